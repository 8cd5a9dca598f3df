// swift-tools-version:5.7
import PackageDescription

let package = Package(
    name: "Countersign",
    platforms: [.iOS(.v13), .macOS(.v11)],
    products: [.library(name: "Countersign", targets: ["Countersign"])],
    targets: [
        .binaryTarget(name: "CountersignFFI", path: "CountersignFFI.xcframework"),
        .target(name: "Countersign", dependencies: ["CountersignFFI"]),
    ]
)
