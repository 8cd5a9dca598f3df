import countersign.Request
import java.math.BigInteger
import java.util.Base64
import org.bouncycastle.asn1.sec.SECNamedCurves
import org.bouncycastle.crypto.digests.SHA256Digest
import org.bouncycastle.crypto.params.ECDomainParameters
import org.bouncycastle.crypto.params.ECPrivateKeyParameters
import org.bouncycastle.crypto.params.Ed25519PrivateKeyParameters
import org.bouncycastle.crypto.signers.ECDSASigner
import org.bouncycastle.crypto.signers.Ed25519Signer
import org.bouncycastle.crypto.signers.HMacDSAKCalculator
import org.bouncycastle.math.ec.ECAlgorithms

/** Signs a request outside of the library, as a hardware wallet or a key store would: by BouncyCastle. */
fun signOutside(request: Request, key: String): String = when (request.scheme) {
    "secp256k1_keccak256", "secp256k1_sha256" -> "0x" + hex(ecdsa(request.digest, BigInteger(key.removePrefix("0x"), 16)))
    "ed25519" -> Base64.getEncoder().encodeToString(ed25519(request.payload, base58(key).copyOf(32)))
    "sui" -> {
        val seed = suiSeed(key)
        val public = Ed25519PrivateKeyParameters(seed).generatePublicKey().encoded
        Base64.getEncoder().encodeToString(byteArrayOf(0) + ed25519(request.digest, seed) + public)
    }
    else -> throw IllegalArgumentException("no signer for ${request.scheme}")
}

fun hex(bytes: ByteArray): String = bytes.joinToString("") { "%02x".format(it) }

fun bytes(hex: String): ByteArray = hex.removePrefix("0x").chunked(2).map { it.toInt(16).toByte() }.toByteArray()

private val curve = SECNamedCurves.getByName("secp256k1").run { ECDomainParameters(curve, g, n, h) }

/** r, s and v: RFC 6979, low s, v 27 or 28. */
private fun ecdsa(digest: ByteArray, key: BigInteger): ByteArray {
    val signer = ECDSASigner(HMacDSAKCalculator(SHA256Digest()))
    signer.init(true, ECPrivateKeyParameters(key, curve))
    val (r, high) = signer.generateSignature(digest)
    val s = high.min(curve.n - high)
    // The parity of the nonce's point is what v says: the one with which the signature leads back to the public key.
    val public = curve.g.multiply(key).normalize()
    val odd = listOf(0, 1).first { odd ->
        val point = curve.curve.decodePoint(byteArrayOf((2 + odd).toByte()) + bytes32(r))
        val inverse = r.modInverse(curve.n)
        val u1 = (-BigInteger(1, digest) * inverse).mod(curve.n)
        ECAlgorithms.sumOfTwoMultiplies(curve.g, u1, point, (s * inverse).mod(curve.n)).normalize() == public
    }
    return bytes32(r) + bytes32(s) + (27 + odd).toByte()
}

private fun bytes32(number: BigInteger): ByteArray {
    val bytes = number.toByteArray().takeLast(32)
    return ByteArray(32 - bytes.size) + bytes
}

private fun ed25519(message: ByteArray, seed: ByteArray): ByteArray {
    val signer = Ed25519Signer()
    signer.init(true, Ed25519PrivateKeyParameters(seed))
    signer.update(message, 0, message.size)
    return signer.generateSignature()
}

/** The bytes of base58 text: a seed, or a seed and its public key. */
private fun base58(text: String): ByteArray {
    val digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
    val number = text.fold(BigInteger.ZERO) { sum, digit -> sum * BigInteger.valueOf(58) + BigInteger.valueOf(digits.indexOf(digit).toLong()) }
    return ByteArray(text.takeWhile { it == '1' }.length) + number.toByteArray().dropWhile { it == 0.toByte() }
}

/** The seed in hex, or in a `suiprivkey1…`: bech32 of a flag and 32 bytes, then six digits of checksum. */
private fun suiSeed(text: String): ByteArray {
    val bits = if (text.startsWith("suiprivkey1")) {
        val digits = text.substringAfterLast('1').dropLast(6).map { "qpzry9x8gf2tvdw0s3jn54khce6mua7l".indexOf(it) }
        digits.joinToString("") { it.toString(2).padStart(5, '0') }.drop(8)
    } else {
        text.removePrefix("0x").map { it.digitToInt(16).toString(2).padStart(4, '0') }.joinToString("")
    }
    return ByteArray(32) { bits.substring(it * 8, it * 8 + 8).toInt(2).toByte() }
}
