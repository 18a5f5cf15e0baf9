package machine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/testreq"
)

// userData is that of an agent whose key is a file.
const userData = `#cloud-config
write_files:
  - {path: /etc/bragg/agent.json, content: '{"vm":"db","listen":":7401","tls":{"key":"/etc/bragg/agent.key"}}'}
  - {path: /etc/bragg/agent.key, content: secret}
  - {path: /etc/machine-id, content: 0123456789abcdef0123456789abcdef}
`

func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !met(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not met: " + what)
		}
	}
}

// A guest sees its own disks and machine-id, all of its processes end with its power, and what it wrote stays.
func TestGuest(t *testing.T) {
	testreq.Root(t)
	dir := t.TempDir()
	disks := Folder(filepath.Join(dir, "disks"))
	for _, id := range []string{"system", "data"} {
		if err := disks.Create(id, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	// In place of an agent: it adds a line to its disk, and leaves a child that survives signals of its group.
	const guest = `setsid sleep 1000 & n=$(tr -d '\0' < /dev/sdb | wc -l); (tr -d '\0' < /dev/sdb; echo start $n $(cat /etc/machine-id)) > /tmp/$$; ` +
		`dd if=/tmp/$$ of=/dev/sdb conv=notrunc,fsync 2>/dev/null; rm /tmp/$$; trap 'exit 0' TERM; while :; do sleep 0.01; done`
	ended := make(chan string, 1)
	p := &Processes{Command: []string{"sh", "-c", guest, "guest-of-" + filepath.Base(dir)}, Folder: filepath.Join(dir, "vms"), Ended: func(id string) { ended <- id }}
	m := state.Machine{
		ID: "vm-1", Name: "db", UserData: []byte(userData), Addresses: []string{"127.1.2.3"},
		Disks: []state.MachineDisk{{Path: disks.Path("system")}, {Path: disks.Path("data")}},
	}
	content := func() string {
		text, err := os.ReadFile(disks.Path("data"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimRight(string(text), "\x00")
	}
	for i, graceful := range []bool{false, true} {
		if err := p.Start(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		until(t, "the guest has written "+p.Console(m.ID), func() bool { return strings.Count(content(), "\n") == i+1 })
		p.Stop(m.ID, graceful)
		if left := p.Running(); len(left) > 0 {
			t.Errorf("running: %q", left)
		}
		if left := testreq.ProcessesNaming(t, "guest-of-"+filepath.Base(dir)); len(left) > 0 {
			t.Errorf("stop %d left %q", i, left)
		}
	}
	const id = "0123456789abcdef0123456789abcdef"
	if got, want := content(), "start 0 "+id+"\nstart 1 "+id+"\n"; got != want {
		t.Errorf("the disk holds %q, want %q", got, want)
	}
	config, err := os.ReadFile(filepath.Join(dir, "vms", "vm-1", "root", "etc", "bragg", "agent.json"))
	if err != nil || !strings.Contains(string(config), `"listen":"127.1.2.3:7401"`) || strings.Contains(string(config), `"/etc/bragg`) {
		t.Errorf("configuration: %s, %v", config, err)
	}
	select {
	case id := <-ended:
		t.Errorf("%s ended by itself", id)
	default:
	}
	p.Command = []string{"true"} // a guest that shuts down
	if err := p.Start(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got != m.ID {
		t.Errorf("%q ended", got)
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	f := Folder(t.TempDir())
	if err := f.Create("a", 10<<20); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(f.Path("a"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("written"), 5<<20); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	if err := f.Copy("a", "b", 12<<20); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.Path("b"))
	if err != nil || len(text) != 12<<20 || string(text[5<<20:5<<20+7]) != "written" {
		t.Errorf("the copy has %d bytes, %v", len(text), err)
	}
	if size, sum, err := f.Write("c", strings.NewReader("abc")); err != nil || size != 3 ||
		sum != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("an image: %d bytes, %s, %v", size, sum, err)
	}
	if err := f.Remove("c"); err != nil || f.Remove("c") != nil {
		t.Error("removing twice", err)
	}
	if got := f.Path("../../etc/passwd"); got != filepath.Join(string(f), "passwd") {
		t.Errorf("a hostile id is at %s", got)
	}
}
