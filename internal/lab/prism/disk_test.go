package prism_test

import (
	"os"
	"testing"
)

func writeAt(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), 1<<20); err != nil {
		t.Fatal(err)
	}
}

func readAt(t *testing.T, path string, length int) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := make([]byte, length)
	if _, err := f.ReadAt(out, 1<<20); err != nil {
		t.Fatal(err)
	}
	return string(out)
}
