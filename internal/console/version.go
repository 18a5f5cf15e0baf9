package console

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is the newest release in CHANGELOG.md: this tree is that release or precedes the next.
const release = "0.1.0"

// Release is set by the linker, with the commit: "0.1.0+1a2b3c4d". Without it, the version has the revision that Go recorded.
var Release = ""

// Version returns the version of this program: "0.1.0+1a2b3c4d", "0.1.0-devel+1a2b3c4d", "0.1.0-devel".
func Version() string {
	if Release != "" {
		return Release
	}
	version := release + "-devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 8 {
				version += "+" + s.Value[:8]
			}
		}
	}
	return version
}

// VersionLine is the output of --version.
func VersionLine(program string) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)\n", program, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
