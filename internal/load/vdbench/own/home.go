package own

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
)

// HomeVariable names the folder of the user's own vdbench. A scenario cannot: it is untrusted, and a program of that folder is run.
const HomeVariable = "BRAGG_VDBENCH_HOME"

// homeFile has the folder on machines whose agents do not get variables.
const homeFile = "/etc/bragg/vdbench"

var needs = []load.Need{{Program: "vdbench"}, {Program: "java", Packages: []load.Package{
	{Family: load.Debian, Name: "default-jre-headless"}, {Family: load.RedHat, Name: "java-latest-openjdk-headless"}, {Family: load.SUSE, Name: "java-21-openjdk-headless"}}}}

func missing(format string, args ...any) error {
	return &diag.Error{Code: "program-missing", Exit: diag.ExitUnavailable, Message: fmt.Sprintf(format, args...),
		Hint: "download vdbench from Oracle, unpack it on the VM, set " + HomeVariable + " to its folder, or write that into " + homeFile + ", and install Java"}
}

// findHome returns the program of the installation.
func findHome() (string, error) {
	home, from := os.Getenv(HomeVariable), HomeVariable
	if home == "" {
		text, err := os.ReadFile(homeFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		home, from = strings.TrimSpace(string(text)), homeFile
	}
	if home == "" {
		return "", missing("find vdbench on this machine: %s is not set, and there is no %s", HomeVariable, homeFile)
	}
	program := filepath.Join(home, "vdbench")
	if !filepath.IsAbs(home) {
		return "", missing("find vdbench on this machine: %s has %q, which is not a whole path", from, home)
	}
	if info, err := os.Stat(program); err != nil || !info.Mode().IsRegular() {
		return "", missing("find vdbench on this machine: the folder %s, from %s, has no vdbench", home, from)
	}
	if _, err := exec.LookPath("java"); err != nil {
		return "", missing("find Java on this machine: %v", err)
	}
	return program, nil
}
