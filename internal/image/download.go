package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
)

const (
	// DefaultPackage is Debian's kernel for VMs; it contains no kernel and depends on the newest one.
	DefaultPackage = "linux-image-cloud-amd64"
	// downloadWithin bounds one download.
	downloadWithin = 15 * time.Minute
	controlMax     = 1 << 20
)

// Download fetches a kernel package from Debian's archive into dir, with this machine's apt-get and its trusted keys, and
// returns its path. For a package that only depends on the newest kernel, it fetches that one.
func Download(ctx context.Context, name, dir string) (path string, err error) {
	for range 3 {
		if path, err = fetch(ctx, name, dir); err != nil {
			return "", err
		}
		next, err := dependency(path)
		if err != nil || next == "" {
			return path, err
		}
		if err := os.Remove(path); err != nil {
			return "", err
		}
		name = next
	}
	return "", noDownload(name, fmt.Errorf("packages with circular dependencies"), "")
}

func fetch(ctx context.Context, name, dir string) (string, error) {
	if !validPackage(name) {
		return "", &diag.Error{
			Code: "bad-package-name", Message: fmt.Sprintf("download %q: not a name of a kernel package", name), Exit: diag.ExitUsage,
			Hint: "give a name such as " + DefaultPackage,
		}
	}
	ctx, cancel := context.WithTimeout(ctx, downloadWithin)
	defer cancel()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	before, err := packagesIn(dir)
	if err != nil {
		return "", err
	}
	// As root, apt-get would switch to its own user, who cannot write here.
	command := exec.CommandContext(ctx, "apt-get", "-q", "-o", "APT::Sandbox::User=", "download", name)
	command.Dir, command.WaitDelay = dir, 5*time.Second
	command.Env = append(os.Environ(), "LC_ALL=C")
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Run(); err != nil {
		return "", noDownload(name, err, said.String())
	}
	after, err := packagesIn(dir)
	if err != nil {
		return "", err
	}
	for path := range after {
		if !before[path] && strings.HasPrefix(filepath.Base(path), name+"_") {
			return path, nil
		}
	}
	for path := range after {
		if strings.HasPrefix(filepath.Base(path), name+"_") {
			return path, nil // apt-get found it here
		}
	}
	return "", noDownload(name, fmt.Errorf("apt-get left no package"), said.String())
}

func packagesIn(dir string) (map[string]bool, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	found := map[string]bool{}
	for _, n := range names {
		found[n] = true
	}
	return found, err
}

func noDownload(name string, err error, said string) error {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := lines[len(lines)-1]; last != "" {
		err = fmt.Errorf("%w: %s", err, last)
	}
	return &diag.Error{
		Code: "no-kernel-package", Message: fmt.Sprintf("download %q", name), Err: err, Exit: diag.ExitUnavailable,
		Hint: "this needs Debian's apt-get and its archive; elsewhere fetch the package by other means and name the file with --kernel",
	}
}

func validPackage(name string) bool {
	rest, ok := strings.CutPrefix(name, "linux-image-")
	return ok && rest != "" && len(name) < 128 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789.+-") == ""
}

// dependency returns the kernel package on which a metapackage depends, or "" if path is a kernel itself.
func dependency(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", badPackage(path, err)
	}
	defer f.Close()
	control, err := openMember(f, "control.tar")
	if err != nil {
		return "", badPackage(path, err)
	}
	defer control.Close()
	next := ""
	err = eachFile(control, func(name string, size int64, r io.Reader) error {
		if name != "control" {
			return nil
		}
		text, err := readAtMost(r, size, controlMax)
		next = leadsTo(string(text))
		return err
	})
	if err != nil {
		return "", badPackage(path, err)
	}
	return next, nil
}

// leadsTo reads a package's control file: a package of section "metapackages" has no content, and the first kernel in its
// dependencies is the intended one.
func leadsTo(control string) string {
	fields := map[string]string{}
	for line := range strings.Lines(control) {
		if key, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") {
			fields[key] = strings.TrimSpace(value)
		}
	}
	if !strings.HasPrefix(fields["Description"], "Linux") || !strings.Contains(fields["Description"], "meta-package") {
		return ""
	}
	for need := range strings.SplitSeq(fields["Depends"], ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(need), " ")
		if validPackage(name) {
			return name
		}
	}
	return ""
}
