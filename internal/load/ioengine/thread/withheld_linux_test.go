package thread

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUsedAndStolen: of the line of all CPUs, without idle time and waits for I/O, and without guests, which user time has.
func TestUsedAndStolen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stat")
	before := Withheld{Stolen: 70e6, Used: 50e6}
	if stolen, used := usedAndStolen(path, before); stolen != before.Stolen || used != before.Used {
		t.Errorf("without the file: %d, %d", stolen, used)
	}
	for text, want := range map[string][2]int64{
		"cpu  1 2 4 1000 500 8 16 32 1 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n": {320e6, 310e6},
		"cpu0 1 2 4 1000 500 8 16 32 1 0\n":                           {before.Stolen, before.Used},
		"cpu  1 2 4 1000\n":                                           {before.Stolen, 70e6},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if stolen, used := usedAndStolen(path, before); stolen != want[0] || used != want[1] {
			t.Errorf("%q: %d stolen and %d used, want %v", text, stolen, used, want)
		}
	}
}
