package nutanix

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/target/targettest/faulttest"
)

// harness is for the list of faults that every provider passes.
func harness() faulttest.Harness {
	return faulttest.Harness{
		Provider: Provider(), Threads: 2,
		Open: func(ctx context.Context, c target.Config) (target.Target, error) {
			return open(ctx, c, target.OpenOptions{}, quick)
		},
		Start: func(t *testing.T) faulttest.Platform { return newRigOf(t, prism.Options{}, nil).platform(t) },
	}
}

func TestListOfFaults(t *testing.T) {
	t.Parallel() // it waits for requests that hang
	harness().Run(t)
}

// accounting is what VMs of another owner are described as.
const accounting = "database of accounting"

func (r *rig) platform(t *testing.T) faulttest.Platform {
	t.Helper()
	file := filepath.Join(t.TempDir(), "target.yml")
	platform := r.config.Credentials["platform"]
	text := fmt.Sprintf("provider: nutanix\nname: prism\nendpoint: %s\nfingerprint: %s\ntemplates: {%s: bragg-debian-12}\n"+
		"credentials: {platform: {user: %s, secret: {file: %q}}}\n", r.URL, r.Fingerprint, template, platform.User, platform.Secret.File)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	planted := map[string]bool{}
	return faulttest.Platform{
		File: file, Secrets: []string{password}, Front: r.Front, Change: changeOf,
		Busy:           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		ExpireSessions: r.Gate.ExpireSessions,
		RememberTasks: func(yes bool) {
			r.Faults.Clear()
			if !yes {
				r.Faults.Add(faults.Rule{Task: "*", Lose: true})
			}
		},
		Left: func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.DeleteFunc(r.leftovers(), func(one string) bool { return planted[one] })
		},
		Plant: func(t *testing.T, left string) {
			name, ok := strings.CutPrefix(left, "vm ")
			if !ok {
				return
			}
			r.plant(t, name)
			mu.Lock()
			defer mu.Unlock()
			planted[left] = true
		},
		Intact: func() (err error) {
			mu.Lock()
			want := len(planted)
			mu.Unlock()
			r.State.Read(func(d *state.Data) {
				for _, vm := range d.VMs {
					if vm.Power == state.On && vm.Description == accounting {
						want--
					}
				}
			})
			if want != 0 {
				return fmt.Errorf("%d VMs of another owner were changed or deleted", want)
			}
			return nil
		},
	}
}

// plant makes a VM of another owner.
func (r *rig) plant(t *testing.T, name string) {
	t.Helper()
	var cluster, host string
	r.State.Read(func(d *state.Data) { cluster, host = d.Cluster.ID, d.Hosts[0].ID })
	task, _, err := r.State.CreateVM(state.VMSpec{
		Name: name, Description: accounting, Sockets: 1, CoresPerSocket: 1, ThreadsPerCore: 1, MemoryBytes: 64 << 20,
		ClusterID: cluster, HostID: host, PowerOn: true,
	})
	if err == nil {
		err = r.State.Await(task)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// changeOf is the method and the path of a request that changes the cluster.
func changeOf(r *http.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodOptions {
		return ""
	}
	return r.Method + " " + r.URL.Path
}
