package iojob

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// deviceOfNumber returns the node of the device "major:minor".
func deviceOfNumber(number string) (string, error) {
	text, err := os.ReadFile(filepath.Join("/sys/dev/block", number, "uevent"))
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(text) {
		if name, found := strings.CutPrefix(strings.TrimSpace(string(line)), "DEVNAME="); found {
			return "/dev/" + name, nil
		}
	}
	return "", errors.New("it has no node")
}

// freeBytes is how much may be written beside a file, which need not exist.
func freeBytes(path string) (int64, bool) {
	for {
		var st unix.Statfs_t
		if err := unix.Statfs(path, &st); err == nil {
			return int64(st.Bavail) * st.Bsize, true
		}
		up := filepath.Dir(path)
		if up == path {
			return 0, false
		}
		path = up
	}
}
