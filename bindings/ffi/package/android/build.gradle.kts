plugins {
    id("com.android.library") version "8.7.3"
    id("org.jetbrains.kotlin.android") version "2.1.20"
}

// What `package/aar` made: Kotlin, and the native libraries.
val generated = file(providers.gradleProperty("generated").get())
layout.buildDirectory = generated.resolve("build")

android {
    namespace = "countersign"
    compileSdk = 35
    defaultConfig {
        minSdk = 24
        consumerProguardFiles("consumer-rules.pro")
    }
    sourceSets["main"].kotlin.srcDir(generated.resolve("kotlin"))
    sourceSets["main"].jniLibs.srcDir(generated.resolve("jniLibs"))
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
    kotlinOptions { jvmTarget = "1.8" }
}

dependencies {
    api("net.java.dev.jna:jna:5.17.0@aar")
    // The annotations with which UniFFI marks what needs a later version of Android.
    implementation("androidx.annotation:annotation:1.9.1")
}
