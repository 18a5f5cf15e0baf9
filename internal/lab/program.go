package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// packages names the Debian packages that bring the programs of a lab.
var packages = map[string]string{
	"libvirtd": "libvirt-daemon-system", "virsh": "libvirt-clients", "qemu-system-x86_64": "qemu-system-x86",
	"qemu-img": "qemu-utils", "dnsmasq": "dnsmasq-base", "sshd": "openssh-server", "ipmi_sim": "openipmi",
}

// findProgram finds a program in PATH, or where servers lie, which PATH may lack.
func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", missing([]string{name})
}

func missing(names []string) error {
	var from []string
	for _, n := range names {
		if p := packages[n]; !slices.Contains(from, p) {
			from = append(from, p)
		}
	}
	return &diag.Error{
		Code: "lab-lacks", Exit: diag.ExitUnavailable, Message: "make a lab: not installed: " + strings.Join(names, ", "),
		Hint: "apt-get install --no-install-recommends " + strings.Join(from, " "),
	}
}

// CheckPrograms tells all programs that a lab needs and this machine lacks.
func (o *Options) CheckPrograms() error {
	want := []string{"dnsmasq"}
	if !o.NoLibvirt {
		want = append(want, "libvirtd", "virsh", "qemu-system-x86_64", "qemu-img")
	}
	if o.SSH {
		want = append(want, "sshd")
	}
	if o.IPMI {
		want = append(want, "ipmi_sim")
	}
	var lacks []string
	for _, name := range want {
		if _, err := findProgram(name); err != nil {
			lacks = append(lacks, name)
		}
	}
	if len(lacks) > 0 {
		return missing(lacks)
	}
	return nil
}
