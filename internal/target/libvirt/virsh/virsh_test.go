package virsh

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
)

func TestURIs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"qemu:///system":  "qemu:///system",
		"qemu:///session": "qemu:///session",
		"qemu+unix:///system?socket=/run/x/libvirt-sock":    "qemu+unix:///system?socket=/run/x/libvirt-sock",
		"qemu+ssh://root@host-1.example.org:2222/system":    "qemu+ssh://root@host-1.example.org:2222/system?no_tty=1",
		"qemu+ssh://10.0.0.1/system?keyfile=/root/.ssh/k":   "qemu+ssh://10.0.0.1/system?keyfile=%2Froot%2F.ssh%2Fk&no_tty=1",
		"qemu+ssh://[fd00::1]/system":                       "qemu+ssh://[fd00::1]/system?no_tty=1",
		"qemu+tls://host/system?pkipath=/etc/pki/elsewhere": "qemu+tls://host/system?pkipath=/etc/pki/elsewhere",
	} {
		if got, err := checkURI(text); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "qemu", "/system", "xen:///system", "test:///default", "qemu+ssh:///system", "qemu://host/system",
		"qemu+ssh://-oProxyCommand=reboot/system", "qemu+ssh://-l@host/system", "qemu+ssh://root:hunter2@host/system",
		"qemu+ssh://host/system?command=/tmp/x", "qemu+ssh://host/system?netcat=/tmp/x", "qemu+ssh://host/system?proxy=native",
		"qemu+ssh://host/system?known_hosts_verify=ignore", "qemu+tls://host/system?no_verify=1", "qemu:///system?socket=-x",
		"qemu:///system;reboot", "qemu:///system ", "qemu:///system\n", "qemu:///elsewhere", "qemu:///system#x",
		"qemu+ssh://host/system?keyfile=/a&keyfile=/b", "--help", "qemu+ext:///system?command=x",
	} {
		got, err := checkURI(text)
		if diag.ExitCode(err) != diag.ExitData {
			t.Errorf("%q was accepted as %q: %v", text, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	got, err := parseFacts(recorded(t, "nodeinfo.txt"), recorded(t, "nodememstats.txt"), recorded(t, "capabilities.xml"), recorded(t, "version.txt"))
	want := Facts{
		UUID: "0b7a3c52-7c41-4a2f-9a37-6d1f0a3f9b11", CPUs: 2, Megahertz: 2596, RAMBytes: 16777216 * 1024,
		Software: "QEMU 7.2.22, libvirt 9.0.0",
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := parseFacts(nil, nil, []byte("<capabilities/>"), nil); err == nil {
		t.Error("a host without a UUID is one")
	}
}

func FuzzCheckURI(f *testing.F) {
	f.Add("qemu+ssh://root@host/system?keyfile=/k")
	f.Add("qemu+unix:///system?socket=/s")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := checkURI(text)
		if err != nil {
			return
		}
		again, err := checkURI(got)
		if err != nil || again != got {
			t.Errorf("%q became %q, and that %q, %v", text, got, again, err)
		}
	})
}

// TestLinesAsTheyCome: lines arrive at once and whole, and a line without an end takes no memory.
func TestLinesAsTheyCome(t *testing.T) {
	t.Parallel()
	var got []string
	w := &lineWriter{line: func(line string) { got = append(got, line) }}
	long := strings.Repeat("x", lineBytesMax)
	for _, part := range []string{"a\nb", "c\n", "\n", long, long, long + "\nd", "\ne"} {
		fmt.Fprint(w, part)
		if len(w.rest) > 2*lineBytesMax {
			t.Errorf("%d bytes are kept", len(w.rest))
		}
	}
	if want := []string{"a", "bc", "", "d"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// What a controller that was killed left of tunnels is removed; what is in use, or is something else, stays.
func TestSweepSockets(t *testing.T) {
	parent, err := os.MkdirTemp("/tmp", "bragg-sweep-") // a short path, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	folder := func(name string) string {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	listen := func(path string) *net.UnixListener {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		return l
	}
	kill := func(path string) { _ = listen(path).Close() }
	kill(filepath.Join(folder("bragg-tunnel-1"), "0"))
	kill(filepath.Join(parent, "bragg-tunnel-1", "1"))
	used := listen(filepath.Join(folder("bragg-tunnel-2"), "0"))
	defer used.Close()
	kill(filepath.Join(parent, "bragg-tunnel-2", "1"))
	folder("bragg-tunnel-3") // is being made
	kill(filepath.Join(folder("bragg-tunnel-4"), "0"))
	if err := os.WriteFile(filepath.Join(parent, "bragg-tunnel-4", "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kill(filepath.Join(folder("bragg-tunnel-mine"), "0"))
	if err := os.Symlink(folder("elsewhere"), filepath.Join(parent, "bragg-tunnel-5")); err != nil {
		t.Fatal(err)
	}
	kill(filepath.Join(parent, "elsewhere", "0"))
	sweepSockets(parent)
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{"bragg-tunnel-2", "bragg-tunnel-3", "bragg-tunnel-4", "bragg-tunnel-5", "bragg-tunnel-mine", "elsewhere"}
	if !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

// A virsh that is ended by writing to a closed connection lost its answer; one that was killed otherwise did not.
func TestHungUp(t *testing.T) {
	t.Parallel()
	for signal, want := range map[syscall.Signal]bool{syscall.SIGPIPE: true, syscall.SIGKILL: false} {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := Failed(Call{}, "", cmd.Wait()); IsLost(err) != want {
			t.Errorf("%v: %v", signal, err)
		}
	}
}

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// However many domains went during a call, that is not a failure of their host.
func TestDomainsThatWent(t *testing.T) {
	t.Parallel()
	const domainsMax = 1000 // that one call describes
	var all []string
	for i := range domainsMax {
		all = append(all, fmt.Sprintf("error: failed to get domain '%s'\n", fmt.Sprintf("2373c78c-8b5b-8864-95ab-%012d", i)))
	}
	exit := errors.New("exit status 1")
	for _, n := range []int{1, 2, domainsMax} {
		err := Failed(Call{}, strings.Join(all[:n], "\n"), exit)
		if !IsGone(err) || len(err.text) > errorBytesMax {
			t.Errorf("%d domains: %v", n, err)
		}
		if err := Failed(Call{}, strings.Join(all[:n], "\n")+"error: Disconnected from host due to end of file\n", exit); IsGone(err) {
			t.Errorf("%d domains and another reason: %v", n, err)
		}
	}
	if n := len(strings.Join(all, "\n")); n > printedBytesMax {
		t.Errorf("%d bytes are printed, and %d kept", n, printedBytesMax)
	}
}
