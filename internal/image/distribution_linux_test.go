package image_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/testreq"
)

// TestDistributionRefused: what cannot be built is refused before any work, and nothing is left. "make soak" builds an image and boots it.
func TestDistributionRefused(t *testing.T) {
	testreq.Root(t)
	for _, program := range []string{"mmdebstrap", "mkfs.ext4", "sfdisk", "qemu-img", "unshare", "apt-cache"} {
		testreq.Program(t, program)
	}
	many := strings.Split(strings.Repeat("fio,", 65), ",")
	for _, c := range []struct {
		with       []string
		code, want string
	}{
		{[]string{"fio", "no-such-package-1", "no-such-package-2"}, "package-unknown", "no package no-such-package-1, no-such-package-2"},
		{[]string{"--help"}, "bad-package-name", `"--help"`}, {[]string{"fio", ""}, "bad-package-name", `""`},
		{[]string{"fio;reboot"}, "bad-package-name", `"fio;reboot"`}, {many, "bad-package-name", "66 packages"},
	} {
		dir := t.TempDir()
		_, err := image.BuildDistribution(t.Context(), image.Distribution{With: c.with}, filepath.Join(dir, "debian.qcow2"))
		var e *diag.Error
		if !errors.As(err, &e) || e.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s with %q", c.with, err, c.code, c.want)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%q: %v is left", c.with, left)
		}
	}
}
