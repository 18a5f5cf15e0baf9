package own

import (
	"os/exec"
	"path/filepath"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
)

// HomeVariable names the folder of the user's own vdbench.
const HomeVariable = "BRAGG_VDBENCH_HOME"

// homeFile has the folder on machines whose agents do not get variables.
const homeFile = "/etc/bragg/vdbench"

var needs = []load.Need{{Program: "vdbench"}, {Program: "java", Packages: []load.Package{
	{Family: load.Debian, Name: "default-jre-headless"}, {Family: load.RedHat, Name: "java-latest-openjdk-headless"}, {Family: load.SUSE, Name: "java-21-openjdk-headless"}}}}

var installation = program.Installation{Name: "vdbench", Program: "vdbench", Variable: HomeVariable, File: homeFile,
	Hint: "download vdbench from Oracle, unpack it on the VM, set " + HomeVariable + " to its folder, or write that into " + homeFile + ", and install Java"}

// findHome returns the program of the installation.
func findHome() (string, error) {
	home, err := installation.Find()
	if err != nil {
		return "", err
	}
	if _, err := exec.LookPath("java"); err != nil {
		return "", installation.Missing("find Java on this machine: %v", err)
	}
	return filepath.Join(home, "vdbench"), nil
}
