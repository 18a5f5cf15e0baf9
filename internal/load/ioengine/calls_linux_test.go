package ioengine

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What a write that failed left in the pipe is no part of the read that follows.
func TestPipeAfterAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, bytes.Repeat([]byte("f"), 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := newSplicer()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	of := &slot{file: &file{fd: int(f.Fd())}, buffer: bytes.Repeat([]byte("w"), 8192), size: 8192}
	for range 3 {
		of.kind = opWrite
		if n := s.perform(of); n >= 0 {
			t.Fatalf("%d bytes were written to a file that is open for reading", n)
		}
		of.kind = opRead
		if n := s.perform(of); n != 8192 || bytes.Count(of.buffer, []byte("f")) != 8192 {
			t.Fatalf("read %d bytes, %q …", n, of.buffer[:8])
		}
		copy(of.buffer, bytes.Repeat([]byte("w"), 8192))
	}
}
