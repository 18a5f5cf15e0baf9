package libvirt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/libvirt/domain"
	"github.com/braggdev/bragg/internal/target/libvirt/storage"
)

func testTag() target.Tag {
	return target.Tag{Controller: "c", Run: "r", Nonce: strings.Repeat("ab", 16)}
}

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s, err := readSettings(target.Config{})
	if err != nil || s.pool != "default" || s.network != "default" || s.cache != "none" || s.diskFormat != storage.Raw {
		t.Errorf("got %+v, %v", s, err)
	}
	_, err = readSettings(target.Config{Options: map[string]string{"cahce": "none", "storage": "everywhere"}})
	if diag.ExitCode(err) != diag.ExitData || !strings.Contains(err.Error(), "and 1 more") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseSights(f *testing.F) {
	f.Add(recorded(f, "domain.xml"))
	f.Add([]byte("<domain id='1'><uuid>x</uuid><metadata><vm xmlns='https://bragg.dev/xmlns/libvirt/1' mark='m'>e30=</vm></metadata></domain>"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := domain.Parse(text)
		if err != nil {
			return
		}
		for _, s := range list {
			if s.Record().VM.ID != s.UUID {
				t.Errorf("the record of %q is of %q", s.UUID, s.Record().VM.ID)
			}
			for _, l := range (presence{nil, s}).layers() {
				if o, ok := storage.ParseVolumeName(l.volume); !ok || o.ID != s.UUID {
					t.Errorf("layer %+v is not its own", l)
				}
			}
		}
	})
}
