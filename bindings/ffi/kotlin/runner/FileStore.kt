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
import java.util.UUID

/**
 * Documents as files in a folder that only its owner can read, on a POSIX file system. The names and contents are those of the program's
 * state directory.
 *
 * The folder is locked by its file `.host-lock`. On Linux the program `countersign` and the hosts in other languages respect that through the
 * program `flock` (util-linux, BusyBox, toybox); without it, only Java's processes see each other. An older `index` that is put back is
 * noticed by the file `.host-mark`.
 */
class FileStore(folder: Path) : Store {
    private val folder: Path = Files.createDirectories(folder, PRIVATE_FOLDER).toRealPath()
    private val channel = FileChannel.open(this.folder.resolve(".runner"), setOf(CREATE, WRITE), PRIVATE_FILE)
    /** Holds the lock that others see. */
    private val holder: Process?
    /** A word that is another one if `index` is not the file that was written with it. */
    private val mark: String

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
        try {
            holder = hold()
        } catch (error: Throwable) {
            channel.close()
            throw error
        }
        val kept = try {
            Files.readAllBytes(this.folder.resolve(MARK)).decodeToString().split(' ', limit = 2)
        } catch (ignored: IOException) {
            emptyList()
        }
        mark = kept.firstOrNull()?.takeIf { it.isNotEmpty() && kept.last() == index() } ?: UUID.randomUUID().toString()
    }

    override val place: String
        get() = "$folder ${Files.readAttributes(folder, BasicFileAttributes::class.java).fileKey()} $mark"

    /** What tells the file `index` from every other that was or will be there. A copied file has another time of change. */
    private fun index(): String {
        val index = folder.resolve("index")
        if (!Files.exists(index)) return "none"
        return "${Files.getAttribute(index, "unix:ino")} ${Files.getAttribute(index, "unix:ctime")}"
    }

    /**
     * Java's locks are not those of `flock`, which the program and the hosts in other languages take: a child holds one, and ends with this
     * process, whose pipe it reads. Null where there is no such program.
     */
    private fun hold(): Process? {
        val file = folder.resolve(".host-lock")
        FileChannel.open(file, setOf(CREATE, WRITE), PRIVATE_FILE).close()
        val child = try {
            ProcessBuilder("flock", "-n", "$file", "sh", "-c", "echo held; exec cat").start()
        } catch (ignored: IOException) {
            return null
        }
        if (child.inputStream.bufferedReader().readLine() == "held") return child
        if (child.waitFor() == 1) throw IOException("another process uses $folder")
        return null
    }

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
            put(name, bytes)
            if (name == "index") put(MARK, "$mark ${index()}".toByteArray())
        }
    }

    private fun put(name: String, bytes: ByteArray?) {
        val file = folder.resolve(name)
        if (bytes == null) {
            if (Files.deleteIfExists(file)) sync(file.parent)
            return
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

    /** Ends the child, and closes the channel: each releases its lock. */
    override fun close() {
        holder?.run {
            outputStream.close()
            waitFor()
        }
        channel.close()
    }

    private fun createFolder(path: Path) {
        if (Files.isDirectory(path)) return
        createFolder(path.parent)
        Files.createDirectory(path, PRIVATE_FOLDER)
        sync(path.parent)
    }

    /** Makes the names in a folder durable. */
    private fun sync(path: Path) = FileChannel.open(path, READ).use { it.force(true) }

    private companion object {
        const val MARK = ".host-mark"
        val PRIVATE_FOLDER = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"))
        val PRIVATE_FILE = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"))
    }
}
