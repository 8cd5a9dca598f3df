import Countersign
import Foundation

/// The owner, or the app in their name.
public protocol Owner: Sendable {
    /// Shows the `terms`, the whole `summary` and the `warnings` of an order, all in this JSON, and asks whether to sign it.
    func consents(to order: Data) async -> Bool

    /// Signs an order for the chain and the account of the request, and returns true; false if a wallet has sent the transaction by itself:
    /// the payment, the redemption or the refund, as the purpose says.
    ///
    /// Throws `NothingSent` if the order is not signed. After any other error, unless it is a `WalletError` whose code says otherwise or the
    /// option `sign_only` is set, a payment may have been sent: nobody is asked again, and the order counts as paid.
    ///
    /// This may take its time: what was sent is heard also where nobody waits for it any more. For one purpose of an order it is called once
    /// at a time; a call that takes more than ten minutes counts as lost, and there is another one.
    func signs(_ order: UnsignedOrder, for request: SigningRequest) async throws -> Bool

    /// Hears every event, as JSON, one after the other. The swaps go on meanwhile, and a call returns once its last event was heard.
    func hears(_ event: Data) async
}

/// What is to be signed.
public struct SigningRequest: Decodable, Sendable {
    public let orderId: String
    /// `funding`, `redemption` or `refund`.
    public let purpose: String
    public let chain: String
    public let account: String
    /// The id of the payment that this one replaces for a higher fee, with the same coins: it is no second payment. Only on Bitcoin-like chains.
    public let replaces: String?
}

/// Thrown by an owner who has neither signed nor sent anything, so that it can be asked again.
public struct NothingSent: LocalizedError {
    public let errorDescription: String?

    public init(_ message: String) { errorDescription = message }
}

/// A wallet's error, with its code of EIP-1193 or JSON-RPC. The machine knows after which codes nothing was sent.
public struct WalletError: LocalizedError {
    public let code: Int64
    public let errorDescription: String?

    public init(code: Int64, message: String) { (self.code, errorDescription) = (code, message) }
}

/// What ended a call: an event `quoted`, `listed`, `stopped` or `failed`.
public struct CallEnd: Decodable, Sendable {
    public struct Failure: Decodable, Sendable {
        public let code: String
        public let message: String
    }

    public let event: String
    public let call: UInt64
    public let reason: String?
    public let message: String?
    public let error: Failure?
}

/// Runs whole swaps: the loop around `Swaps`, which decides everything.
///
/// It may end at any moment, as an app does that is killed. The next one on the same store continues with `follow`. While an app is in the
/// background it stands still: follow open orders again as soon as the system lets the app run, and long before their timelocks end.
public actor SwapRunner {
    private let swaps: Swaps
    private let store: FileStore
    private let owner: Owner
    private let session: URLSession
    private var calls: [UInt64: CheckedContinuation<CallEnd, Error>] = [:]
    private var running: [UInt64: Task<Void, Never>] = [:]
    /// Signers at work, by order and purpose: two calls at once could send two transactions.
    private var signing: [String: Signing] = [:]
    /// The last event that the owner hears or is going to hear.
    private var hearing: Task<Void, Never>?
    private var nap: Task<Void, Never>?
    private var isChanged = false
    /// Why the loop has ended. Every later call fails with it.
    private var end: Error?

    public init(options: Data, registry: Data, nodes: Data, policy: Data = Data(), store: FileStore, owner: Owner) throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForResource = 20
        configuration.httpCookieStorage = nil
        configuration.urlCache = nil
        session = URLSession(configuration: configuration)
        swaps = try Swaps.open(
            options: options, registry: registry, policy: policy, nodes: nodes,
            documents: store.load(), place: store.place(), now: Self.now())
        self.store = store
        self.owner = owner
    }

    /// Asks for a quote.
    public func quote(_ wish: Data) async throws -> CallEnd { try await call { try swaps.quote(wish: wish) } }

    /// Swaps.
    public func create(_ wish: Data) async throws -> CallEnd { try await call { try swaps.create(wish: wish) } }

    /// Continues a stored order.
    public func follow(_ orderId: String) async throws -> CallEnd { try await call { try swaps.follow(orderId: orderId) } }

    /// Refunds a stored order after its timelock.
    public func refund(_ orderId: String) async throws -> CallEnd { try await call { try swaps.refund(orderId: orderId) } }

    /// Lists the stored orders; `Owner.hears` has them.
    public func list() async throws -> CallEnd { try await call { try swaps.list() } }

    /// Returns the words of the rescue phrase; nil before the first order.
    public func phrase() throws -> String? { try swaps.phrase() }

    /// The loop, until its task is cancelled. Start it once. When it ends, every call fails with the reason: what is not followed any longer
    /// must not look as if it had ended.
    public func run() async throws {
        do {
            try await loop()
            stop(CancellationError())
        } catch {
            stop(error)
            throw error
        }
    }

    private func stop(_ error: Error) {
        end = error
        running.values.forEach { $0.cancel() }
        signing.values.forEach { $0.work?.cancel() }
        signing = [:]
        calls.values.forEach { $0.resume(throwing: error) }
        calls = [:]
    }

    private func loop() async throws {
        while !Task.isCancelled {
            isChanged = false
            let output = try swaps.poll(now: Self.now())
            for id in output.withdrawn { withdraw(id) }
            for need in output.needs { try serve(need) }
            for event in try JSONSerialization.jsonObject(with: Data(output.events.utf8)) as? [Any] ?? [] {
                try hear(JSONSerialization.data(withJSONObject: event))
            }
            if isChanged { continue }
            // At most five seconds, so that a clock that was set, or a device that slept, is noticed.
            let now = Self.now()
            let millis = min(max(output.wakeAt ?? .max, now) - now, 5_000)
            let nap = Task<Void, Never> { try? await Task.sleep(nanoseconds: millis * 1_000_000) }
            self.nap = nap
            await withTaskCancellationHandler { await nap.value } onCancel: { nap.cancel() }
        }
    }

    private func call(_ start: () throws -> UInt64) async throws -> CallEnd {
        if let end { throw end }
        return try await withCheckedThrowingContinuation { continuation in
            do {
                calls[try start()] = continuation
                changed()
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }

    private func changed() {
        isChanged = true
        nap?.cancel()
    }

    /// Has the owner hear an event after those before it. Nobody waits for that: an alert can stay on the screen while a redemption is due.
    private func hear(_ event: Data) {
        let before = hearing
        hearing = Task {
            await before?.value
            await owner.hears(event)
            if let end = try? JSONDecoder().decode(CallEnd.self, from: event), ["quoted", "listed", "stopped", "failed"].contains(end.event) {
                calls.removeValue(forKey: end.call)?.resume(returning: end)
            }
        }
    }

    /// Ends what is not needed any more. A signer is not ended: what it has sent has to be known all the same.
    private func withdraw(_ id: UInt64) {
        running.removeValue(forKey: id)?.cancel()
        for task in signing.keys {
            if signing[task]?.id == id { signing[task]?.isWithdrawn = true }
            signing[task]?.waiting.removeAll { $0.id == id }
        }
    }

    /// Does what is needed, or has it done.
    private func serve(_ need: Need) throws {
        let detail = Data(need.detail.utf8)
        let members = try JSONSerialization.jsonObject(with: detail) as? [String: Any] ?? [:]
        switch members["kind"] as? String {
        case "store":
            do {
                try store.write(Array(zip(members["names"] as? [String] ?? [], need.bodies)))
            } catch {
                try reply(need.id, ["stored": false, "detail": Self.words(error)])
                return
            }
            try reply(need.id, ["stored": true])
        case "http":
            running[need.id] = Task { await send(need, members) }
        case "consent":
            running[need.id] = Task {
                let isAgreed = await owner.consents(to: detail)
                try? reply(need.id, ["consent": isAgreed])
            }
        case "sign":
            try sign(need)
        default:
            break
        }
    }

    private func send(_ need: Need, _ members: [String: Any]) async {
        guard let text = members["url"] as? String, let url = URL(string: text) else {
            // Nothing was sent.
            try? reply(need.id, ["failed": "connect", "detail": "not a URL"])
            return
        }
        var request = URLRequest(url: url)
        request.httpMethod = members["method"] as? String
        request.httpBody = need.bodies.first ?? nil
        for pair in members["headers"] as? [[String]] ?? [] { request.setValue(pair[1], forHTTPHeaderField: pair[0]) }
        do {
            let (bytes, response) = try await session.bytes(for: request, delegate: Redirects())
            var body = Data()
            for try await byte in bytes {
                body.append(byte)
                if body.count > 16 << 20 {
                    try reply(need.id, ["failed": "too_large"])
                    return
                }
            }
            guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            let headers = response.allHeaderFields.map { ["\($0.key)", "\($0.value)"] }
            try reply(need.id, ["status": response.statusCode, "headers": headers], body)
        } catch {
            let kind: String
            switch (error as? URLError)?.code {
            // Only where nothing can have been sent.
            case .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed, .notConnectedToInternet: kind = "connect"
            case .timedOut: kind = "timeout"
            default: kind = "interrupted"
            }
            // Not the message, which could contain the URL.
            try? reply(need.id, ["failed": kind, "detail": "\((error as NSError).domain) \((error as NSError).code)"])
        }
    }

    /// A signer at work: for which need, whether that was withdrawn, since when (seconds of uptime), and the needs that wait for the same.
    private struct Signing {
        let id: UInt64
        var isWithdrawn = false
        let since: TimeInterval
        var waiting: [Need]
        var work: Task<Void, Never>?
    }

    /// Seconds after which a signer at work counts as lost: a redemption that nobody signs loses the funds, and two do no harm.
    private static let lost: TimeInterval = 600

    /// Has an order signed, or lets the need wait for the signer that is at work for the same.
    private func sign(_ need: Need) throws {
        // Nobody is asked after the end.
        guard end == nil else { return }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let request = try decoder.decode(SigningRequest.self, from: Data(need.detail.utf8))
        let task = "\(request.orderId) \(request.purpose)"
        let uptime = ProcessInfo.processInfo.systemUptime
        let waiting = signing[task]?.waiting ?? []
        if let atWork = signing[task], uptime - atWork.since < Self.lost {
            signing[task]?.waiting = waiting + [need]
            return
        }
        signing[task] = Signing(id: need.id, since: uptime, waiting: waiting, work: nil)
        signing[task]?.work = Task {
            let answer = await signed(need.id, request)
            var waiting: [Need] = []
            var isWithdrawn = false
            // Where another call has begun meanwhile, nobody waits for this one.
            if let atWork = signing[task], atWork.id == need.id {
                waiting = atWork.waiting
                isWithdrawn = atWork.isWithdrawn
                signing[task] = nil
            }
            // One transaction is reported once: for a withdrawn need only if no other need waits.
            if let answer, waiting.isEmpty || !isWithdrawn { try? reply(need.id, answer) }
            changed()
            // What was sent, or why not, holds for the needs that waited, too; a signature does not.
            for need in waiting {
                if let answer { try? reply(need.id, answer) } else { try? sign(need) }
            }
        }
    }

    /// Signs. Returns the reply; nil if the order was handed back, or is not wanted any more.
    private func signed(_ id: UInt64, _ request: SigningRequest) async -> [String: Any]? {
        do {
            // A task can begin after the end, and nobody is asked then.
            guard end == nil, let order = try swaps.takeUnsigned(id: id) else { return nil }
            guard try await owner.signs(order, for: request) else { return ["sent": true] }
            _ = try swaps.replySigned(id: id, order: order)
            return nil
        } catch let error as NothingSent {
            return ["not_signed": Self.words(error)]
        } catch {
            let code = (error as? WalletError).map { ["code": String($0.code)] } ?? [:]
            return ["signer_failed": Self.words(error)].merging(code) { text, _ in text }
        }
    }

    private func reply(_ id: UInt64, _ members: [String: Any], _ body: Data = Data()) throws {
        running[id] = nil
        let json = try JSONSerialization.data(withJSONObject: members)
        _ = try swaps.reply(id: id, reply: String(decoding: json, as: UTF8.self), body: body)
        changed()
    }

    /// The text of foreign code, as JSON may have it. One that comes from Objective-C can have half of a surrogate pair, which its UTF-8 has not.
    private static func words(_ error: Error) -> String {
        String(decoding: Array(error.localizedDescription.utf8.prefix(1_024)), as: UTF8.self)
    }

    private static func now() -> UInt64 { UInt64(Date().timeIntervalSince1970 * 1_000) }
}

/// A redirect is an answer like any other.
private final class Redirects: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest
    ) async -> URLRequest? { nil }
}
