package console

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Release is set by the linker when a release is built; otherwise it is the version that Go recorded.
var Release = ""

// Version returns what this program calls itself: "1.2.0", "devel 1a2b3c4d", "devel".
func Version() string {
	if Release != "" {
		return Release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 8 {
			return "devel " + s.Value[:8]
		}
	}
	return "devel"
}

// VersionLine is what a program prints of itself.
func VersionLine(program string) string {
	return fmt.Sprintf("%s %s (%s, %s/%s)\n", program, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
