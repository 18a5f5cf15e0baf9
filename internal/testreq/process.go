package testreq

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// ProcessesNaming lists processes other than this one whose command line or environment names text: what a test left
// behind. Each is its id and its command line.
func ProcessesNaming(t testing.TB, text string) []string {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		id := filepath.Base(e)
		if id == strconv.Itoa(os.Getpid()) {
			continue
		}
		command, err := os.ReadFile(filepath.Join(e, "cmdline"))
		if err != nil {
			continue // it ended meanwhile
		}
		environment, err := os.ReadFile(filepath.Join(e, "environ"))
		if err != nil {
			continue
		}
		if bytes.Contains(command, []byte(text)) || bytes.Contains(environment, []byte(text)) {
			found = append(found, id+" "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}
