//! Names the shared library as programs look for it at run time.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        let major = env!("CARGO_PKG_VERSION_MAJOR");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnbody.so.{major}");
        // rustc exports fmm-cuda's functions of the CUDA driver. In a program that links the driver
        // they would take the place of its own.
        println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
        // Its worker threads run until the process ends: dlclose must leave their code in memory.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
