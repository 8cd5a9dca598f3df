# Sourced: finds or fetches what it takes to compile and run Kotlin. What is fetched stays in the target folder.
#
# Defines `kotlinc`, and sets `kotlin_library`, `jna`, `jna_folder` (JNA's name of this platform) and `work`. Where something
# cannot be had, calls `skip` with the reason.
# shellcheck shell=bash disable=SC2034

kotlin_version=2.4.20
kotlin_integrity=IF5IVM7LpPhA/ntHQQpaVt1yxpaaQovtEVYLyqWMuaLr0XelLPPm7/sM6HLhtcRjjjoSsK7I7lP2kzYJkMy73w==
work=$CARGO_TARGET_DIR/kotlin
mkdir -p "$work/downloads"

# The compiler is a jar: npm's copy of its shell scripts cannot be executed.
kotlinc() {
  java -Xmx1g -cp "$work/kotlinc/lib/kotlin-preloader.jar" org.jetbrains.kotlin.preloading.Preloader \
    -cp "$work/kotlinc/lib/kotlin-compiler.jar" org.jetbrains.kotlin.cli.jvm.K2JVMCompiler "$@"
}

fetch_kotlin() {
  local archive=$work/downloads/kotlin-compiler-$kotlin_version.tgz
  command -v npm > /dev/null || skip "npm is not installed, which has the Kotlin compiler"
  (cd "$work/downloads" && npm pack --silent "kotlin-compiler@$kotlin_version" > /dev/null) || skip "npm cannot fetch kotlin-compiler $kotlin_version"
  if [ "$(openssl dgst -sha512 -binary "$archive" | base64 -w 0)" != "$kotlin_integrity" ]; then
    echo "kotlin-compiler $kotlin_version is not the pinned one" >&2
    exit 1
  fi
  rm -rf "$work/kotlinc.new"
  mkdir "$work/kotlinc.new"
  tar -xzf "$archive" -C "$work/kotlinc.new" --strip-components=1
  mv "$work/kotlinc.new" "$work/kotlinc"
  rm "$archive"
}

# Prints where a file of a Debian package is: installed, or downloaded into the target folder.
debian() {
  local package=$1 path=$2
  if [ -e "$path" ]; then
    echo "$path"
    return
  fi
  if [ ! -e "$work/debian$path" ]; then
    command -v apt-get > /dev/null || return 1
    (cd "$work/downloads" && apt-get download "$package" && dpkg-deb -x "$package"_*.deb "$work/debian") > /dev/null 2>&1 || return 1
  fi
  echo "$work/debian$path"
}

for tool in java jar cargo python3; do command -v "$tool" > /dev/null || skip "$tool is not installed"; done
[ -d "$work/kotlinc" ] || fetch_kotlin
kotlin_library=$work/kotlinc/lib/kotlin-stdlib.jar
case $(uname -sm) in
  "Linux x86_64") jni=x86_64-linux-gnu jna_folder=linux-x86-64 ;;
  "Linux aarch64") jni=aarch64-linux-gnu jna_folder=linux-aarch64 ;;
  *) skip "no JNA for $(uname -sm) here" ;;
esac
jna=$(debian libjna-java /usr/share/java/jna.jar) || skip "libjna-java of Debian is neither installed nor to be had"
dispatch=$(debian libjna-jni "/usr/lib/$jni/jni/libjnidispatch.system.so") || skip "libjna-jni of Debian is neither installed nor to be had"
# JNA looks for its native half in its own jar, where Debian's is not: a folder on the class path stands in for it.
mkdir -p "$work/native/com/sun/jna/$jna_folder"
cp "$dispatch" "$work/native/com/sun/jna/$jna_folder/libjnidispatch.so"
