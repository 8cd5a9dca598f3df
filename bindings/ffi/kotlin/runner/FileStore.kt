package runner

import countersign.StoredDocument
import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.channels.OverlappingFileLockException
import java.nio.file.FileVisitResult
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.SimpleFileVisitor
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.nio.file.StandardOpenOption.CREATE
import java.nio.file.StandardOpenOption.READ
import java.nio.file.StandardOpenOption.TRUNCATE_EXISTING
import java.nio.file.StandardOpenOption.WRITE
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.attribute.PosixFilePermissions

/**
 * Documents as files in a folder that only its owner can read, on a POSIX file system. The names and contents are those of the program's
 * state directory. The lock is not the program's: do not let both change the folder at the same time.
 */
class FileStore(folder: Path) : Store {
    private val folder: Path = Files.createDirectories(folder, PRIVATE_FOLDER).toRealPath()
    private val channel = FileChannel.open(this.folder.resolve(".runner"), setOf(CREATE, WRITE), PRIVATE_FILE)

    init {
        val lock = try {
            channel.tryLock()
        } catch (ignored: OverlappingFileLockException) {
            null // Another runner of this process has it.
        }
        if (lock == null) {
            channel.close()
            throw IOException("another runner uses ${this.folder}")
        }
    }

    override val place: String
        get() = "$folder ${Files.readAttributes(folder, BasicFileAttributes::class.java).fileKey()}"

    override fun load(): List<StoredDocument> {
        val documents = ArrayList<StoredDocument>()
        Files.walkFileTree(folder, object : SimpleFileVisitor<Path>() {
            override fun visitFile(file: Path, attributes: BasicFileAttributes): FileVisitResult {
                val name = folder.relativize(file).joinToString("/")
                // Locks, and what was not completely written.
                if (name.split('/').none { it.startsWith(".") || it == "lock" }) documents += StoredDocument(name, Files.readAllBytes(file))
                return FileVisitResult.CONTINUE
            }
        })
        return documents
    }

    override fun write(documents: List<Pair<String, ByteArray?>>) {
        for ((name, bytes) in documents) {
            val file = folder.resolve(name)
            if (bytes == null) {
                if (Files.deleteIfExists(file)) sync(file.parent)
                continue
            }
            createFolder(file.parent)
            val new = file.resolveSibling(".new-${file.fileName}")
            FileChannel.open(new, setOf(CREATE, WRITE, TRUNCATE_EXISTING), PRIVATE_FILE).use {
                val buffer = ByteBuffer.wrap(bytes)
                while (buffer.hasRemaining()) it.write(buffer)
                it.force(true)
            }
            Files.move(new, file, ATOMIC_MOVE)
            sync(file.parent)
        }
    }

    /** Closing the channel releases the lock. */
    override fun close() = channel.close()

    private fun createFolder(path: Path) {
        if (Files.isDirectory(path)) return
        createFolder(path.parent)
        Files.createDirectory(path, PRIVATE_FOLDER)
        sync(path.parent)
    }

    /** Makes the names in a folder durable. */
    private fun sync(path: Path) = FileChannel.open(path, READ).use { it.force(true) }

    private companion object {
        val PRIVATE_FOLDER = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
        val PRIVATE_FILE = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))
    }
}
