package faults

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/braggdev/bragg/internal/image/ova"
	"github.com/braggdev/bragg/internal/lab/vcsim"
)

// image writes an OVA as bragg image ova does. Its disk does not boot, which the simulator does not notice.
func image(t *testing.T, dir string) {
	t.Helper()
	disk := strings.Repeat("disk", 16<<10)
	if err := ova.Pack(t.Context(), ova.Machine{Name: "guest"}, strings.NewReader(disk), int64(len(disk)), filepath.Join(dir, "guest.ova")); err != nil {
		t.Fatal(err)
	}
}

// An image is imported once, also after an import that was interrupted.
func TestImportOfImage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	image(t, r.dir)
	r.config.Templates = map[string]string{"linux": "guest.ova"}
	var uploads atomic.Int64
	var broken atomic.Bool
	broken.Store(true)
	r.Front(func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if strings.HasPrefix(q.URL.Path, "/nfc/") {
				uploads.Add(1)
				if broken.Load() {
					w.WriteHeader(http.StatusInternalServerError)
					return
				}
			}
			inner.ServeHTTP(w, q)
		})
	})
	v := r.open(t)
	if _, err := v.Create(t.Context(), r.tag, specs(t.Context(), v, 1)); err == nil {
		t.Fatal("a VM was made from an image whose upload failed")
	}
	broken.Store(false)
	uploads.Store(0)
	for range 2 { // the second time by another program
		v := r.open(t)
		vms := r.create(t, v, 2)
		if err := v.Delete(t.Context(), r.tag, vms); err != nil {
			t.Fatal(err)
		}
	}
	if n := uploads.Load(); n != 1 {
		t.Errorf("%d uploads, want 1", n)
	}
	left := r.left()
	if len(left) != 1 || !strings.HasPrefix(left[0], "bragg-image-guest-") || strings.HasSuffix(left[0], "-partial") {
		t.Errorf("left: %q, want the image", left)
	}
	if _, ok := r.VMs()[vcsim.Template]; !ok {
		t.Error("the template of the user is gone")
	}
}
