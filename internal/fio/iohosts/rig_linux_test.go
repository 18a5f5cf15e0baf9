package iohosts_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iohosts"
	"github.com/braggdev/bragg/internal/testreq"
)

// otherVersion in the environment of a host makes the program there another version.
const otherVersion = "BRAGG_TEST_OTHER_VERSION"

const version = "test 1"

// TestMain lets the test binary be the program on hosts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == iohosts.Verb {
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		p := iohosts.Program{
			Arguments: os.Args[2:], Version: version, Executable: self, In: os.Stdin, Out: os.Stdout, Errors: os.Stderr, Exit: os.Exit,
			Surroundings: iohosts.Surroundings{CPUs: 2, MemoryMB: 1024, PageSize: 4096},
		}
		if other := os.Getenv(otherVersion); other != "" {
			p.Version = other
		}
		os.Exit(iohosts.Serve(context.Background(), p))
	}
	os.Exit(m.Run())
}

// rig is hosts with a place for files, and what was said.
type rig struct {
	*testreq.SSH
	files   string // of jobs: each host has its own folder there
	temps   string // each host's temporary folder
	options iohosts.Options

	mu   sync.Mutex
	said []string
}

func newRig(t *testing.T, count int, environment ...string) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("needs servers of ssh")
	}
	r := &rig{files: t.TempDir()}
	temps, err := os.MkdirTemp("", "bragg-temps") // short and without the test's name, which may hold anything
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temps) })
	r.temps = temps
	for i := range count {
		for _, dir := range []string{filepath.Join(r.temps, fmt.Sprint(i)), filepath.Join(r.files, fmt.Sprint(i))} {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.SSH = testreq.SSHD(t, count, append([]string{"TMPDIR=" + temps + "/%d", "XDG_CACHE_HOME=" + temps + "/%d/cache"}, environment...)...)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := iohosts.ParseHosts([]string{strings.Join(r.Hosts(), ",")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.options = iohosts.Options{
		Hosts: hosts, SSHOptions: r.Options, Version: version, Executable: self,
		Say: func(text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.said = append(r.said, text)
		},
	}
	return r
}

// jobs sets the job file; @ means the host's own directory.
func (r *rig) jobs(t *testing.T, text string) *rig {
	t.Helper()
	text = strings.ReplaceAll(text, "@", r.files+"/${BRAGG_HOST_NUMBER}")
	jobs := iohosts.Jobs{Inputs: []fiojob.Input{{Name: "job.fio", Text: text}}}
	_, list := fiojob.ParseAll(jobs.Inputs, jobs.Record(fiojob.Options{Host: true, Env: func(name string) (string, bool) {
		return os.Getenv(name), os.Getenv(name) != ""
	}}, r.options.Hosts[0]))
	if list.HasErrors() {
		t.Fatal(list)
	}
	r.options.Jobs = jobs
	return r
}

func (r *rig) run(t *testing.T) (*fioreport.Clients, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // only against hanging
	defer cancel()
	return iohosts.Run(ctx, r.options)
}

func (r *rig) everything() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.said, "\n")
}

// clean checks that nothing is left on any host: no folder, no process.
func (r *rig) clean(t *testing.T) {
	t.Helper()
	for until := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left, err := filepath.Glob(filepath.Join(r.temps, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, testreq.ProcessesNaming(t, "TMPDIR="+r.temps)...)
		if len(left) == 0 {
			return
		}
		if time.Now().After(until) {
			t.Errorf("left on hosts: %q", left)
			return
		}
	}
}
