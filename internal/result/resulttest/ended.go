package resulttest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/result"
)

// Only opens the only bundle in a runs folder, which must be sealed and unchanged, until the test ends.
func Only(t testing.TB, runs string) *result.Bundle {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(runs, "*", "manifest.json"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("bundles %q, %v", dirs, err)
	}
	b, err := result.Open(filepath.Dir(dirs[0]))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if err := b.VerifySeal(); err != nil {
		t.Error(err)
	}
	return b
}

// Operations counts those of all loads. A bundle without any is an error.
func Operations(t testing.TB, b *result.Bundle) (n uint64) {
	t.Helper()
	for one, err := range b.Intervals() {
		if err != nil {
			t.Fatal(err)
		}
		for i := range one.Directions {
			n += one.Directions[i].Operations
		}
	}
	if n == 0 {
		t.Error("no operations")
	}
	return n
}

// NoSecret searches all files of a folder for secrets and private keys.
func NoSecret(t testing.TB, dir string, secrets ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		NoSecretIn(t, path, string(text), secrets...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// NoSecretIn searches a text, such as an output.
func NoSecretIn(t testing.TB, what, text string, secrets ...string) {
	t.Helper()
	for _, secret := range slices.Concat(secrets, []string{"PRIVATE KEY"}) {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds a secret", what)
		}
	}
}
