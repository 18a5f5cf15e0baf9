package iohosts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iohosts"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

const reads = "[global]\ndirectory=@\nsize=4m\nbs=4k\nioengine=psync\n[read]\nrw=randread\nruntime=2\ntime_based\nrate_iops=500\n"

// document is what readers of fio's client take from it.
type document struct {
	Stats []struct {
		Name     string `json:"jobname"`
		Hostname string `json:"hostname"`
		Port     int    `json:"port"`
		Error    int    `json:"error"`
		Read     struct {
			Total      uint64  `json:"total_ios"`
			IOPS       float64 `json:"iops"`
			Completion struct {
				Count      uint64            `json:"N"`
				Max        uint64            `json:"max"`
				Percentile map[string]uint64 `json:"percentile"`
			} `json:"clat_ns"`
		} `json:"read"`
		Options map[string]string `json:"job options"`
	} `json:"client_stats"`
	Bragg struct {
		StartSpread int64 `json:"start_spread_ns"`
		Hosts       []struct {
			Name  string `json:"name"`
			State string `json:"state"`
			Error string `json:"error"`
		} `json:"hosts"`
		Jobs []struct {
			Name   string `json:"jobname"`
			Hosts  int    `json:"hosts"`
			Spread map[string]struct {
				Slowest string  `json:"slowest"`
				Ratio   float64 `json:"ratio"`
			} `json:"spread"`
		} `json:"jobs"`
	} `json:"bragg"`
}

func documentOf(t *testing.T, c *fioreport.Clients) *document {
	t.Helper()
	var b bytes.Buffer
	if err := c.WriteJSON(&b, fioreport.Labels{Version: fioreport.FormatVersion}); err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

// Hosts start together, and what is merged is the merge of what each did.
func TestHostsStartTogetherAndMerge(t *testing.T) {
	r := newRig(t, 3).jobs(t, reads)
	clients, err := r.run(t)
	if err != nil {
		t.Fatal(err, r.everything())
	}
	var sum stat.Histogram
	var operations uint64
	for _, h := range clients.Hosts {
		if h.Err != nil || !h.Report.Done {
			t.Fatalf("host %s: %v", h.Name, h.Err)
		}
		dir := &h.Report.Rows[0].Directions[interval.Read]
		sum.Merge(dir.Service)
		operations += dir.Operations
		// All hosts are this machine, so their clocks are one; a machine that is busy may be late, never early.
		if h.StartLate < -h.ClockError-time.Millisecond || h.StartLate > 10*time.Second {
			t.Errorf("host %s began %v after the common start", h.Name, h.StartLate)
		}
		if h.ClockError <= 0 || h.ClockOffset.Abs() > h.ClockError+time.Millisecond {
			t.Errorf("host %s is this machine: its clock is %v ahead, ±%v", h.Name, h.ClockOffset, h.ClockError)
		}
	}
	if operations < 3*500 {
		t.Errorf("%d operations", operations)
	}
	d := documentOf(t, clients)
	if n := len(d.Stats); n != 4 || d.Stats[n-1].Name != fioreport.AllClients || d.Stats[n-1].Options != nil {
		t.Fatalf("rows %+v", d.Stats)
	}
	all := d.Stats[3].Read
	if all.Total != operations || all.Completion.Count != operations || all.Completion.Max != sum.Max() {
		t.Errorf("merged %+v of %d operations", all, operations)
	}
	for _, p := range []float64{1, 50, 99, 99.9, 99.99} {
		if got, want := all.Completion.Percentile[fmt.Sprintf("%.6f", p)], uint64(sum.Quantile(p/100)); got != want {
			t.Errorf("p%v of all is %d, of the merged histogram %d", p, got, want)
		}
	}
	for i, s := range d.Stats[:3] {
		if s.Hostname != "127.0.0.1" || s.Port != r.Ports[i] || s.Name != "read" || s.Options["directory"] != "" {
			t.Errorf("row %d: %+v", i, s)
		}
	}
	if j := d.Bragg.Jobs; len(j) != 1 || j[0].Hosts != 3 || j[0].Spread["read"].Ratio < 1 {
		t.Errorf("jobs over hosts: %+v", j)
	}
	if !strings.Contains(r.everything(), "are the same machine") {
		t.Errorf("no warning that hosts are one machine: %s", r.everything())
	}
	r.clean(t)
}

// Jobs after a stonewall start on all hosts when the last host has finished the jobs before it.
func TestStonewallsHoldAcrossHosts(t *testing.T) {
	r := newRig(t, 2).jobs(t, "[global]\ndirectory=@\nioengine=psync\nbs=4k\n[a]\nrw=write\nsize=64k\nthinktime=${BRAGG_HOST_NUMBER}50ms\nthinktime_blocks=1\n"+
		"[b]\nstonewall\nrw=write\nsize=64k\n")
	clients, err := r.run(t)
	if err != nil {
		t.Fatal(err, r.everything())
	}
	if err := clients.Failed(); err != nil {
		t.Fatal(err)
	}
	for _, h := range clients.Hosts {
		for _, other := range clients.Hosts {
			first, second := &h.Report.Rows[0], &other.Report.Rows[1]
			if end := first.StartNanos + int64(first.Runtime); second.StartNanos < end-int64(h.ClockError+other.ClockError) {
				t.Errorf("%s began the second job %v before %s was through with the first", other.Name, time.Duration(end-second.StartNanos), h.Name)
			}
		}
	}
	if fast, slow := clients.Hosts[0].Report.Rows[0].Runtime, clients.Hosts[1].Report.Rows[0].Runtime; slow < fast {
		t.Errorf("the test needs a slow host: %v, %v", fast, slow)
	}
	r.clean(t)
}

const endless = "[global]\ndirectory=@\nsize=4m\nbs=4k\nioengine=psync\n[read]\nrw=randread\nruntime=600\ntime_based\nrate_iops=500\n"

// whenRunning calls f once every host has reported some operations.
func (r *rig) whenRunning(f func()) {
	var once sync.Once
	r.options.WatchEvery = 100 * time.Millisecond
	r.options.Watch = func(c *fioreport.Clients) {
		for _, h := range c.Hosts {
			if h.Err == nil && (h.Report == nil || h.Report.Rows[0].Directions[interval.Read].Operations == 0) {
				return
			}
		}
		once.Do(f)
	}
}

// A host whose connection breaks is reported with what it had delivered; its load ends, and the others go on.
func TestLostHost(t *testing.T) {
	r := newRig(t, 3).jobs(t, strings.Replace(endless, "600", "6", 1))
	r.whenRunning(func() { r.KillServer(t, 1) })
	clients, err := r.run(t)
	if err != nil {
		t.Fatal(err, r.everything())
	}
	if err := clients.Failed(); err == nil || !strings.Contains(err.Error(), r.options.Hosts[1].Name) {
		t.Errorf("failed: %v", err)
	}
	d := documentOf(t, clients)
	if len(d.Stats) != 4 || d.Bragg.Hosts[1].State != "lost" || d.Bragg.Hosts[1].Error == "" || d.Bragg.Hosts[0].State != "done" {
		t.Fatalf("%+v", d)
	}
	var total uint64
	for i, s := range d.Stats[:3] {
		if lost := i == 1; (s.Error != 0) != lost || s.Read.Total == 0 {
			t.Errorf("row %d: error %d, %d operations", i, s.Error, s.Read.Total)
		}
		total += s.Read.Total
	}
	if d.Stats[3].Read.Total != total || d.Stats[0].Read.Total < 1000 || d.Stats[1].Read.Total >= d.Stats[0].Read.Total {
		t.Errorf("operations %+v", d.Stats)
	}
	if !strings.Contains(r.everything(), "is lost") {
		t.Errorf("said %s", r.everything())
	}
	r.clean(t)
}

// Stopping ends all hosts at once, with a report of what they did.
func TestStop(t *testing.T) {
	r := newRig(t, 2).jobs(t, endless)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r.whenRunning(cancel)
	clients, err := iohosts.Run(ctx, r.options)
	if err != nil {
		t.Fatal(err, r.everything())
	}
	for _, h := range clients.Hosts {
		if h.Err != nil || !h.Report.Done || h.Report.Rows[0].Directions[interval.Read].Operations == 0 {
			t.Errorf("host %s: %v, %+v", h.Name, h.Err, h.Report)
		}
	}
	r.clean(t)
}

// What cannot be reached or prepared fails the run before any load, on every host, and says which host and why.
func TestFailuresBeforeLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, r *rig)
		want   string
		exit   int
	}{
		{"wrong host key", func(t *testing.T, r *rig) {
			known := filepath.Join(r.SSH.Folder, "known")
			text, err := os.ReadFile(known)
			if err != nil {
				t.Fatal(err)
			}
			user, err := os.ReadFile(filepath.Join(r.SSH.Folder, "user.pub"))
			if err != nil {
				t.Fatal(err)
			}
			first, rest, _ := bytes.Cut(text, []byte("\n"))
			other := bytes.Join([][]byte{bytes.Fields(rest)[0], bytes.Fields(user)[0], bytes.Fields(user)[1]}, []byte(" "))
			if err := os.WriteFile(known, bytes.Join([][]byte{first, other, nil}, []byte("\n")), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "it shows another key than the one that is known of it", diag.ExitUnavailable},
		{"refused login", func(t *testing.T, r *rig) {
			if err := os.Truncate(filepath.Join(r.SSH.Folder, "authorized"), 0); err != nil {
				t.Fatal(err)
			}
		}, "Permission denied", diag.ExitUnavailable},
		{"no server", func(t *testing.T, r *rig) {
			hosts, err := iohosts.ParseHosts([]string{r.Hosts()[0] + ",127.0.0.1:1"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.options.Hosts = hosts
		}, "Connection refused", diag.ExitUnavailable},
		{"no space", func(t *testing.T, r *rig) { mount(t, filepath.Join(r.temps, "1"), "size=1m") }, "cannot store the program", diag.ExitUnavailable},
		{"noexec", func(t *testing.T, r *rig) { mount(t, filepath.Join(r.temps, "1"), "size=200m,noexec") }, "cannot run programs", diag.ExitUnavailable},
		{"no folder", func(t *testing.T, r *rig) { r.options.Folder = "/nowhere" }, "cannot make a folder", diag.ExitUnavailable},
		{"no file", func(t *testing.T, r *rig) {
			if err := os.Mkdir(filepath.Join(r.files, "1", "read.0.0"), 0o755); err != nil {
				t.Fatal(err)
			}
		}, "neither a file nor a block device", diag.ExitData},
		{"no space for files", func(t *testing.T, r *rig) { mount(t, filepath.Join(r.files, "1"), "size=1m") }, "no space left", diag.ExitUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 2).jobs(t, endless)
			c.change(t, r)
			_, err := r.run(t)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), r.options.Hosts[1].Name) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				err = joined.Unwrap()[0]
			}
			if diag.ExitCode(err) != c.exit {
				t.Errorf("exit code %d, want %d: %v", diag.ExitCode(err), c.exit, err)
			}
			if left, err := filepath.Glob(filepath.Join(r.files, "1", "*")); err != nil || c.name == "no space for files" && len(left) > 0 {
				t.Errorf("half a file is left: %q, %v", left, err)
			}
			r.clean(t)
		})
	}
}

func mount(t *testing.T, dir, options string) {
	t.Helper()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "none", dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
}

// On request the run continues without the hosts that fail; the report lists them as missing.
func TestWithoutFailedHosts(t *testing.T) {
	r := newRig(t, 3).jobs(t, strings.Replace(reads, "runtime=2", "runtime=1", 1))
	r.options.WithoutFailed = true
	mount(t, filepath.Join(r.temps, "0"), "size=1m")
	if err := os.Mkdir(filepath.Join(r.files, "2", "read.0.0"), 0o755); err != nil {
		t.Fatal(err)
	}
	clients, err := r.run(t)
	if err != nil {
		t.Fatal(err, r.everything())
	}
	d := documentOf(t, clients)
	if len(d.Stats) != 2 || d.Bragg.Hosts[0].State != "missing" || d.Bragg.Hosts[1].State != "done" || d.Bragg.Hosts[2].State != "missing" {
		t.Errorf("%+v", d)
	}
	if clients.Failed() == nil {
		t.Error("missing hosts are not a failure")
	}
	r.clean(t)
}

// A build of another version is refused, even with the same protocol.
func TestOtherVersionIsRefused(t *testing.T) {
	r := newRig(t, 1, otherVersion+"=test 2").jobs(t, endless)
	_, err := r.run(t)
	if err == nil || !strings.Contains(err.Error(), "its bragg is test 2, and this one is test 1") {
		t.Errorf("error %v", err)
	}
	r.clean(t)
}

// A host with another architecture needs a build of its own, and the message says which.
func TestOtherPlatformNamesTheBuild(t *testing.T) {
	fake := t.TempDir()
	for name, text := range map[string]string{"arm": "aarch64", "sparc": "sparc64"} {
		dir := filepath.Join(fake, name)
		script := "#!/bin/sh\ncase $1 in -s) echo Linux;; *) echo " + text + ";; esac\n"
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "uname"), []byte(script), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"arm": "it is linux/arm64, and this bragg is linux/", "sparc": "it is a Linux sparc64 system"} {
		r := newRig(t, 1, "PATH="+filepath.Join(fake, name)+":/usr/bin:/bin").jobs(t, endless)
		_, err := r.run(t)
		if err == nil || !strings.Contains(err.Error(), want) || diag.ExitCode(err) != diag.ExitUnavailable {
			t.Errorf("%s: error %v", name, err)
		}
		var userErr *diag.Error
		if name == "arm" && (!errors.As(err, &userErr) || !strings.Contains(userErr.Hint, "bragg-linux-arm64")) {
			t.Errorf("hint of %v", err)
		}
		r.clean(t)
	}
}

// The copy that is kept is used by the next run, and only if it is this very build.
func TestKeptProgramIsUsedAgain(t *testing.T) {
	r := newRig(t, 1).jobs(t, strings.Replace(reads, "runtime=2", "runtime=1", 1))
	r.options.Keep = true
	kept := func() []string {
		found, err := filepath.Glob(filepath.Join(r.temps, "0", "cache", "bragg", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for range 2 {
		if _, err := r.run(t); err != nil {
			t.Fatal(err, r.everything())
		}
		if found := kept(); len(found) != 1 {
			t.Fatalf("kept %q", found)
		}
	}
	// With a full disk only the copy that is there can be used.
	r.options.Keep, r.options.Folder = false, "/nowhere"
	if _, err := r.run(t); err != nil {
		t.Errorf("the copy is not used: %v", err)
	}
	if err := os.WriteFile(kept()[0], []byte("#!/bin/sh\necho tampered\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := r.run(t); err == nil || !strings.Contains(err.Error(), "cannot make a folder") {
		t.Errorf("a copy that was changed: %v", err)
	}
}

// Two runs share a host without touching each other's program or files.
func TestTwoRunsOnOneHost(t *testing.T) {
	first := newRig(t, 1).jobs(t, reads)
	second := (&rig{SSH: first.SSH, files: first.files, temps: first.temps, options: first.options}).jobs(t, strings.ReplaceAll(reads, "[read]", "[other]"))
	var wait sync.WaitGroup
	for _, r := range []*rig{first, second} {
		wait.Go(func() {
			clients, err := r.run(t)
			if err != nil {
				t.Error(err)
				return
			}
			if err := clients.Failed(); err != nil || clients.Hosts[0].Report.Rows[0].Directions[interval.Read].Operations < 500 {
				t.Errorf("%v, %+v", err, clients.Hosts[0].Report)
			}
		})
	}
	wait.Wait()
	first.clean(t)
}

// Hosts write different content to different offsets, unless the job sets the same seed.
func TestSeedsOfHosts(t *testing.T) {
	r := newRig(t, 2).jobs(t, "[w]\nfilename=@/f\nsize=1m\nio_size=64k\nrw=randwrite\nrandseed=7\nioengine=psync\n")
	contents := func() (string, string) {
		if _, err := r.run(t); err != nil {
			t.Fatal(err, r.everything())
		}
		var texts [2]string
		for i := range texts {
			path := filepath.Join(r.files, fmt.Sprint(i), "f")
			text, err := os.ReadFile(path)
			if err = errors.Join(err, os.Remove(path)); err != nil {
				t.Fatal(err)
			}
			texts[i] = string(text)
		}
		return texts[0], texts[1]
	}
	if a, b := contents(); a == b {
		t.Error("two hosts write the same")
	}
	r.options.Jobs.SameSeed = true
	if a, b := contents(); a != b {
		t.Error("two hosts with the same seed write different content")
	}
}

// A folder's name may hold anything: it never becomes a part of a command.
func TestHostileFolder(t *testing.T) {
	r := newRig(t, 1).jobs(t, strings.Replace(reads, "runtime=2", "runtime=1", 1))
	folder := filepath.Join(r.temps, "0", "a'; touch "+"pwned; echo \"$(touch pwned)` \\ $HOME")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	r.options.Folder = folder
	if _, err := r.run(t); err != nil {
		t.Fatal(err, r.everything())
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	for _, dir := range []string{".", folder, r.temps, os.Getenv("HOME")} {
		if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
			t.Errorf("a name was run as a command, in %s", dir)
		}
	}
	if err := os.Remove(folder); err != nil {
		t.Error(err)
	}
	r.clean(t)
}
