package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/testreq"
)

// hostsRig is servers of ssh, and the words of a command line that reach them.
func hostsRig(t *testing.T, count int) (rig *testreq.SSH, temps string, words []string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs servers of ssh")
	}
	temps = t.TempDir()
	rig = testreq.SSHD(t, count, "TMPDIR="+temps)
	words = []string{"io", "--hosts=" + strings.Join(rig.Hosts(), ",")}
	for _, o := range rig.Options {
		words = append(words, "--ssh-option", o)
	}
	return rig, temps, words
}

// noHostLeft waits until nothing is left of a run on the hosts: no process, no folder.
func noHostLeft(t *testing.T, temps string) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(temps, "*"))
		if err != nil {
			t.Fatal(err)
		}
		left := append(files, testreq.ProcessesNaming(t, "TMPDIR="+temps)...)
		if len(left) == 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("left on hosts: %q", left)
		}
	}
}

// The command line reaches hosts; reports and status intervals are documents of fio's client.
func TestIOOnHosts(t *testing.T) {
	t.Parallel()
	_, temps, words := hostsRig(t, 2)
	t.Run("outputs", func(t *testing.T) {
		for _, output := range [][]string{
			{"--output-format=json", "--status-interval=1", "--runtime=2"}, {"--output-format=normal", "--runtime=1"},
			{"--output-format=terse", "--runtime=1"}, {"--output-format=json+", "--minimal", "--runtime=1"},
		} {
			t.Run(output[0], func(t *testing.T) {
				t.Parallel()
				checkOutput(t, output[0], ioOnHosts(t, slices.Concat(words, output)))
			})
		}
	})
	noHostLeft(t, temps)
}

// ioOnHosts runs a job of a file with variables and an include on two hosts, and returns the report.
func ioOnHosts(t *testing.T, words []string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "common.inc"), []byte("size=1m\nioengine=psync\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "job.fio")
	text := "[global]\ndirectory=${BRAGG_TEST_DIR}/${BRAGG_HOST}\ninclude common.inc\n[a]\nrw=randread\ntime_based\n[b]\nrw=write\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout output
	b := startBragg(t, func(c *exec.Cmd) {
		c.Env = append(c.Env, "BRAGG_TEST_DIR="+dir)
		c.Stdout = &stdout
	}, append(words, "--section=a", file)...)
	if code := b.exitCode(t); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, stdout.String(), b.out.String())
	}
	if found, err := filepath.Glob(filepath.Join(dir, "127.0.0.1-*", "a.0.0")); err != nil || len(found) != 2 {
		t.Errorf("files %q, %v", found, err)
	}
	return stdout.String()
}

// checkOutput looks at a report of two hosts.
func checkOutput(t *testing.T, format, stdout string) {
	t.Helper()
	switch format {
	case "--output-format=json":
		count := 0
		for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); count++ {
			var doc struct {
				Stats []map[string]any `json:"client_stats"`
			}
			if err := d.Decode(&doc); err != nil {
				t.Fatal(err)
			}
			if n := len(doc.Stats); n == 0 || doc.Stats[n-1]["jobname"] != "All clients" {
				t.Errorf("document %d: %+v", count, doc)
			}
		}
		if count < 2 {
			t.Errorf("%d documents", count)
		}
	case "--output-format=normal":
		if !strings.Contains(stdout, "<all hosts> a: (groupid=0, jobs=2): err= 0") {
			t.Error(stdout)
		}
	default:
		if lines := strings.Split(strings.TrimSpace(stdout), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[2], "3;fio-3.33;All clients;") {
			t.Errorf("%q", lines)
		}
	}
}

// A controller that is killed leaves neither processes nor files on hosts, whatever moment it is.
func TestKilledControllerLeavesNothing(t *testing.T) {
	t.Parallel()
	_, temps, words := hostsRig(t, 2)
	dir := t.TempDir()
	job := []string{
		"--name=a", "--rw=randread", "--size=64m", "--ioengine=psync", "--directory=" + dir + "/${BRAGG_HOST_NUMBER}", "--time_based", "--runtime=600",
	}
	file := filepath.Join(dir, "job.fio")
	text := strings.ReplaceAll(strings.Join(append([]string{"[a]"}, job[1:]...), "\n"), "--", "")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, after := range []time.Duration{50, 200, 300, 400, 600, 1000, 3000} {
		b := startBragg(t, nil, append(slices.Clone(words), file)...)
		time.Sleep(after * time.Millisecond)
		if err := b.Process.Signal(syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		_ = b.exitCode(t)
		noHostLeft(t, temps)
		files, err := filepath.Glob(filepath.Join(dir, "?", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if info, err := os.Stat(f); err != nil || info.Size() != 64<<20 {
				t.Errorf("half a file is left after %v: %v %v", after, info, err)
			}
		}
	}
}

// Consent to write to a device is given for a host, and looked at there: one that does not have it keeps all from starting.
func TestDevicesOfHosts(t *testing.T) {
	t.Parallel()
	rig, temps, words := hostsRig(t, 2)
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, make([]byte, 16<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	device := testreq.Loop(t, image)
	file := filepath.Join(t.TempDir(), "job.fio")
	if err := os.WriteFile(file, []byte("[w]\nfilename="+device+"\nrw=write\nbs=64k\ndirect=1\nioengine=psync\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	consent := []string{"--allow-device=" + device, "--device-size=16m", "--device-link=" + image}
	first := append(slices.Clone(consent), "--device-host="+rig.Hosts()[0])
	code, stdout, stderr := inProcess(t, slices.Concat(words, first, []string{file})...)
	if code != 77 || !strings.Contains(stderr, "host \""+rig.Hosts()[1]+"\"") || !strings.Contains(stderr, "nothing proves") {
		t.Errorf("without consent on one host: exit code %d\n%s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(image)
	if err != nil || slices.ContainsFunc(text, func(b byte) bool { return b != 0 }) {
		t.Fatalf("a device was written to though the run was refused, %v", err)
	}
	code, _, stderr = inProcess(t, slices.Concat(words, consent, []string{"--device-host=c", file})...)
	if code != 64 || !strings.Contains(stderr, "names none of the hosts") {
		t.Errorf("consent for a host that is not there: exit code %d\n%s", code, stderr)
	}
	one := slices.Clone(words)
	one[1] = "--hosts=" + rig.Hosts()[0]
	if code, stdout, stderr = inProcess(t, slices.Concat(one, first, []string{file})...); code != 0 {
		t.Errorf("with consent: exit code %d\n%s%s", code, stdout, stderr)
	}
	noHostLeft(t, temps)
}

// Whatever a host is called, it is a host or refused before anything is started.
func TestHostileHostNames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"-oProxyCommand=touch pwned", "a;touch pwned", "$(touch pwned)", "a b", "'"} {
		code, stdout, stderr := inProcess(t, "io", "--hosts="+name, "--name=a", "--rw=read", "--size=1m")
		if code != 65 || stdout != "" || !strings.Contains(stderr, "^") {
			t.Errorf("%q: exit code %d\n%s%s", name, code, stdout, stderr)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	for _, args := range [][]string{
		{"--hosts=a,a"}, {"--hosts="}, {"--same-seed"}, {"--hosts=a", "--host-folder=relative"}, {"--hosts=a", "--device-host=b"}, {"--client=a"},
		{"--hosts=a", "--metrics-listen=127.0.0.1:0"},
	} {
		if code, _, stderr := inProcess(t, slices.Concat([]string{"io"}, args, []string{"--name=a", "--rw=read", "--size=1m"})...); code != 64 {
			t.Errorf("%q: exit code %d, %s", args, code, stderr)
		}
	}
}

// Ctrl-C goes to the whole foreground of a terminal; the hosts' connections outlive it, and the report is of what was done.
func TestInterruptReachesHostsInOrder(t *testing.T) {
	t.Parallel()
	_, temps, words := hostsRig(t, 2)
	dir := t.TempDir()
	output := filepath.Join(dir, "report.json")
	b := startBragg(t, func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }, append(words,
		"--output-format=json", "--output="+output, "--status-interval=1", "--name=a", "--rw=randread", "--size=1m", "--ioengine=psync",
		"--filename="+filepath.Join(dir, "f"), "--time_based", "--runtime=600", "--rate_iops=200")...)
	for until := time.Now().Add(hangGuard); ; time.Sleep(20 * time.Millisecond) {
		if info, err := os.Stat(output); err == nil && info.Size() > 0 {
			break
		}
		if time.Now().After(until) || b.ended() {
			t.Fatalf("no report: %s", b.out.String())
		}
	}
	if err := syscall.Kill(-b.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := b.exitCode(t); code != 130 {
		t.Errorf("exit code %d\n%s", code, b.out.String())
	}
	f, err := os.Open(output)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var last struct {
		Bragg struct {
			Hosts []struct{ State, Error string }
		}
		Stats []struct {
			Read struct {
				Total int `json:"total_ios"`
			}
		} `json:"client_stats"`
	}
	for d := json.NewDecoder(f); d.More(); {
		if err := d.Decode(&last); err != nil {
			t.Fatal(err)
		}
	}
	for i, h := range last.Bragg.Hosts {
		if h.State != "done" || last.Stats[i].Read.Total == 0 {
			t.Errorf("host %d: %+v", i, h)
		}
	}
	noHostLeft(t, temps)
}
