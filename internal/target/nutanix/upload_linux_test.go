package nutanix

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/target/targettest"
	"github.com/braggdev/bragg/internal/testreq"
)

// uploads are the images that Bragg made.
func (r *rig) uploads() (images []state.Image) {
	r.State.Read(func(d *state.Data) {
		for _, i := range d.Images {
			if strings.HasPrefix(i.Name, "bragg-image-") {
				images = append(images, *i)
			}
		}
	})
	return images
}

// sent is how often the content of an image was sent.
func (r *rig) sent() (n int) {
	for _, request := range r.Gate.Requests() {
		if strings.HasPrefix(request, "PUT /api/nutanix/v3/images/") {
			n++
		}
	}
	return n
}

// A file becomes an image once, whatever happens meanwhile: later VMs, targets and controllers find it by its digest.
func TestUpload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "debian.qcow2")
	if out, err := exec.Command(testreq.Program(t, "qemu-img"), "create", "-q", "-f", "qcow2", file, "64M").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	const put = "PUT /api/nutanix/v3/images/*/file"
	for name, rule := range map[string]faults.Rule{
		"well":              {Request: "GET /nothing"},
		"busy":              {Request: put, Status: 503, Times: 2},
		"session ends":      {Request: put, ExpireSessions: true, Times: 1},
		"content confirmed": {Request: put, Drop: true, Times: 1},
		"image confirmed":   {Request: "POST /api/nutanix/v3/images", Drop: true, Times: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRigOf(t, prism.Options{}, nil)
			r.config.Templates = map[string]string{template: file}
			r.Faults.Add(rule)
			tag := targettest.NewTag("run-1")
			l := r.open(t, nil)
			defer l.Close()
			all := specs(t, l, "OLTP", 2)
			var wait sync.WaitGroup
			for i := range all { // both need the image first
				wait.Go(func() {
					if _, err := l.Create(t.Context(), tag, all[i:i+1]); err != nil {
						t.Error(err)
					}
				})
			}
			wait.Wait()
			images := r.uploads()
			if len(images) != 1 || images[0].Name != "bragg-image-"+digest || images[0].SHA256 != digest || images[0].SizeBytes != int64(len(content)) {
				t.Fatalf("images %+v", images)
			}
			sent := r.sent()
			again := r.open(t, nil)
			defer again.Close()
			if _, err := again.Create(t.Context(), tag, specs(t, again, "DSS", 1)); err != nil {
				t.Fatal(err)
			}
			if now := r.sent(); now != sent || len(r.uploads()) != 1 {
				t.Errorf("sent %d times, then %d times; images %+v", sent, now, r.uploads())
			}
			owned, err := again.Owned(t.Context(), tag)
			if err == nil {
				err = again.Delete(t.Context(), tag, owned)
			}
			if err != nil || len(r.uploads()) != 1 {
				t.Errorf("with its VMs, the image: %+v, %v", r.uploads(), err)
			}
		})
	}
}

// An upload that fails leaves no image and no VM, and says what and why.
func TestUploadFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "debian.raw")
	if err := os.WriteFile(file, []byte("system"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRigOf(t, prism.Options{}, nil)
	r.config.Templates = map[string]string{template: file}
	for name, c := range map[string]struct {
		rule faults.Rule
		want string
	}{
		"refused":   {faults.Rule{Request: "PUT /api/nutanix/v3/images/*/file", Status: 500}, "Prism answers 500"},
		"no API v3": {faults.Rule{Request: "POST /api/nutanix/v3/images", Status: 404}, "no API v3"},
		"no right":  {faults.Rule{Request: "POST /api/nutanix/v3/images", Status: 403}, "lacks a privilege"},
		"task":      {faults.Rule{Task: "ImageUpload", Times: 1, Fail: "checksum of " + password + " differs"}, "checksum of"},
	} {
		r.Faults.Clear()
		l := r.open(t, nil)
		defer l.Close()
		all := specs(t, l, "OLTP", 1)
		r.Faults.Add(c.rule)
		_, err := l.Create(t.Context(), targettest.NewTag("run-1"), all)
		text := diag.Sentence(err)
		if err == nil || !strings.Contains(text, c.want) || strings.Contains(text, password) || diag.ExitCode(err) != diag.ExitUnavailable {
			t.Errorf("%s: got %q, exit code %d", name, text, diag.ExitCode(err))
		}
		r.Faults.Clear()
		if images := r.uploads(); len(images) > 0 || len(r.leftovers()) > 0 {
			t.Errorf("%s: left images %+v, %q", name, images, r.leftovers())
		}
	}
}
