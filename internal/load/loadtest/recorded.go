package loadtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Recorded is the text of a file in testdata, such as what a program once printed.
func Recorded(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
