import Countersign
import Foundation

/// Documents as files in a folder that only the app can read. Names and contents are those of the program's state directory.
///
/// The folder is locked by its file `.host-lock`, which the program `countersign` and the hosts in other languages respect. An older `index`
/// that is put back is noticed by the file `.host-mark`.
public final class FileStore: @unchecked Sendable {
    private let folder: URL
    private let lock: Int32
    /// A word that is another one if `index` is not the file that was written with it.
    private var mark = ""

    /// Opens a folder, which exists from then on. One store at a time has it.
    public init(_ folder: URL) throws {
        self.folder = folder
        try Self.create(folder)
        lock = open(folder.appendingPathComponent(".host-lock").path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        try Self.check(lock)
        try Self.check(flock(lock, LOCK_EX | LOCK_NB))
        let kept = (try? String(contentsOf: folder.appendingPathComponent(Self.markName), encoding: .utf8)) ?? ""
        let parts = kept.split(separator: " ", maxSplits: 1).map(String.init)
        mark = parts.count == 2 && parts[1] == index() ? parts[0] : UUID().uuidString
    }

    deinit { close(lock) }

    /// Identifies this folder: a copy has another number, and a folder where an older `index` was put back another mark. The path is no part
    /// of it, because an update can move an app's container.
    public func place() throws -> String {
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.path)
        return [FileAttributeKey.systemNumber, .systemFileNumber].map { "\(attributes[$0] ?? "")" }.joined(separator: " ") + " " + mark
    }

    private static let markName = ".host-mark"

    /// What tells the file `index` from every other that was or will be there. A copied file has another time of change.
    private func index() -> String {
        var status = stat()
        guard stat(folder.appendingPathComponent("index").path, &status) == 0 else { return "none" }
        return "\(status.st_ino) \(status.st_ctimespec.tv_sec) \(status.st_ctimespec.tv_nsec)"
    }

    /// Reads every document.
    public func load() throws -> [StoredDocument] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.path).compactMap { name in
            let file = folder.appendingPathComponent(name)
            // Locks, and what was not completely written.
            let isKept = name.split(separator: "/").allSatisfy { !$0.hasPrefix(".") && $0 != "lock" }
            guard isKept, !file.hasDirectory else { return nil }
            return StoredDocument(name: name, bytes: try Data(contentsOf: file))
        }
    }

    /// Writes documents durably, in this order. One without bytes is deleted.
    public func write(_ documents: [(String, Data?)]) throws {
        for (name, bytes) in documents {
            try put(name, bytes)
            if name == "index" { try put(Self.markName, Data("\(mark) \(index())".utf8)) }
        }
    }

    private func put(_ name: String, _ bytes: Data?) throws {
        let file = folder.appendingPathComponent(name)
        let parent = file.deletingLastPathComponent()
        guard let bytes = bytes else {
            if unlink(file.path) != 0 && errno != ENOENT { try Self.check(-1) }
            try Self.sync(parent)
            return
        }
        try Self.create(parent)
        let new = parent.appendingPathComponent(".new-" + file.lastPathComponent)
        // Readable after the first unlocking, so that orders can be followed in the background.
        let attributes: [FileAttributeKey: Any] = [
            .posixPermissions: 0o600, .protectionKey: FileProtectionType.completeUntilFirstUserAuthentication,
        ]
        guard FileManager.default.createFile(atPath: new.path, contents: bytes, attributes: attributes) else { throw POSIXError(.EIO) }
        try Self.sync(new)
        try Self.check(rename(new.path, file.path))
        try Self.sync(parent)
    }

    private static func create(_ folder: URL) throws {
        guard !FileManager.default.fileExists(atPath: folder.path) else { return }
        try create(folder.deletingLastPathComponent())
        try check(mkdir(folder.path, 0o700))
        try sync(folder.deletingLastPathComponent())
    }

    /// `fsync` leaves bytes in the drive's own memory on Apple's systems.
    private static func sync(_ path: URL) throws {
        let file = open(path.path, O_RDONLY | O_CLOEXEC)
        try check(file)
        defer { close(file) }
        if fcntl(file, F_FULLFSYNC) != 0 { try check(fsync(file)) }
    }

    private static func check(_ result: Int32) throws {
        if result < 0 { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
    }
}

private extension URL {
    var hasDirectory: Bool { (try? resourceValues(forKeys: [.isDirectoryKey]).isDirectory) ?? false }
}
