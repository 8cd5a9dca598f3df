// The worker that signs with a chain's own SDK, which verifies nothing. `sdk-family` is replaced when the site is built.
import { sign } from "sdk-family";

self.onmessage = async ({ data: { documents } }) => {
  try {
    const answer = await sign(JSON.parse(documents.request), JSON.parse(documents.wallet), documents.response);
    self.postMessage({ answer: JSON.stringify(answer) });
  } catch (error) {
    self.postMessage({ failed: error instanceof Error ? error.message : String(error) });
  }
};
