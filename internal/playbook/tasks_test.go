package playbook

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/verb"
)

// recorded is what callback.py wrote under ansible-core 2.14: a task that changed, one that failed on one of two machines.
const recorded = `{"event": "task", "task": "Install"}
{"event": "ok", "host": "192.0.2.1", "task": "Install", "ignored": false, "changed": true, "seconds": 1.25, "message": ""}
{"event": "failed", "host": "192.0.2.2", "task": "Install", "ignored": false, "changed": false, "seconds": 0.5, "message": "No package matching 'fio' is available"}
{"event": "task", "task": "Check"}
{"event": "failed", "host": "192.0.2.1", "task": "Check", "ignored": true, "changed": false, "seconds": null, "message": "exit 3"}
{"event": "skipped", "host": "192.0.2.1", "task": "Check", "ignored": false, "changed": false, "seconds": 0.1, "message": ""}
`

type notes struct {
	events []interval.Event
	doubts []string
}

func (*notes) Annotate(string)          {}
func (*notes) Log(string)               {}
func (n *notes) Disturb(_, text string) { n.doubts = append(n.doubts, text) }
func (n *notes) Event(e interval.Event) { n.events = append(n.events, e) }

func read(text string) (*tasks, *notes) {
	n := &notes{}
	t := &tasks{notes: n, playbook: "site.yml", mask: func(s string) string { return s }, machines: machines{"W": {
		{name: "192.0.2.1", vms: []target.VM{{Name: "W-0001", Group: "W"}}}, {name: "192.0.2.2", vms: []target.VM{{Name: "W-0002", Group: "W"}}},
	}}}
	t.read(strings.NewReader(text))
	return t, n
}

func TestTasks(t *testing.T) {
	got, n := read(recorded)
	var texts []string
	for _, e := range n.events {
		texts = append(texts, fmt.Sprintf("%s|%s|%s|%s|%s", e.Kind, e.Subject, e.Message, e.Error, time.Duration(e.SpanNanos)))
	}
	want := []string{
		"task-started||site.yml: Install||0s",
		"task-ended|W-0001|Install: changed in 1.25s||1.25s",
		"task-ended|W-0002|Install: failed in 500ms|No package matching 'fio' is available|500ms",
		"task-started||site.yml: Check||0s",
		"task-ended|W-0001|Check: failed, ignored: exit 3||0s",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("events %q", texts)
	}
	if err := got.failed(); err == nil || err.Error() != `task "Install" on W-0002 failed: No package matching 'fio' is available` {
		t.Errorf("error %v", err)
	}
	// Cut anywhere, it never has more failures or events.
	for i := range recorded {
		if cut, n := read(recorded[:i]); len(cut.failures) > 1 || len(n.events) > len(want) {
			t.Errorf("cut at %d: %d failures, %d events", i, len(cut.failures), len(n.events))
		}
	}
}

// Ansible takes a playbook that did nothing for a success.
func TestIdle(t *testing.T) {
	const (
		other   = `{"event": "unmatched", "task": "clients"}`
		task    = `{"event": "task", "task": "T"}`
		skipped = `{"event": "skipped", "host": "192.0.2.1", "task": "T"}`
		facts   = `{"event": "ok", "host": "192.0.2.1", "task": "Gathering Facts", "facts": true}`
		lost    = `{"event": "unreachable", "host": "192.0.2.1", "task": "T", "ignored": true}`
		ok      = `{"event": "ok", "host": "192.0.2.1", "task": "T"}`
		failed  = `{"event": "failed", "host": "192.0.2.1", "task": "T", "ignored": true}`
	)
	const prefix = `playbook "site.yml": `
	nowhere := `no machine of the inventory matches the play "clients"`
	for _, c := range []struct {
		lines  []string
		err    string
		doubts []string
	}{
		{nil, "no task ran", nil},
		{[]string{other}, "no task ran: " + nowhere, nil},
		{[]string{task}, "", []string{"no task ran"}}, // meta: end_play
		{[]string{task, skipped}, "", []string{"every task was skipped"}},
		{[]string{task, facts}, "", []string{"no task ran after the facts were gathered"}},
		{[]string{task, facts, task, skipped, other}, "", []string{"every task was skipped", nowhere}},
		{[]string{task, lost}, "", []string{"no machine was reachable, which the playbook ignores"}},
		{[]string{task, ok, other}, "", []string{nowhere}},
		{[]string{task, skipped, task, ok}, "", nil},
		{[]string{task, failed}, "", nil},
	} {
		got, n := read("{\"event\": \"start\"}\n" + strings.Join(c.lines, "\n") + "\n")
		text := ""
		if err := got.idle(); err != nil {
			text = err.Error()
		}
		for i, d := range n.doubts {
			n.doubts[i] = strings.TrimPrefix(d, prefix)
		}
		if text != c.err || !slices.Equal(n.doubts, c.doubts) {
			t.Errorf("%q: %q, %q; want %q, %q", c.lines, text, n.doubts, c.err, c.doubts)
		}
	}
}

// Without a word of the callback plugin nothing is known, and a playbook of a newer ansible does not fail for it.
func TestIdleWithoutCallback(t *testing.T) {
	got, n := read("")
	if err := got.idle(); err != nil || len(n.doubts) != 1 || !strings.Contains(n.doubts[0], "not recorded") {
		t.Errorf("%v, %q", err, n.doubts)
	}
}

func TestFault(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "has no play",
		"---\n":                                  "has no play",
		"# later\n":                              "has no play",
		"[]\n":                                   "has no play",
		"hosts: all\n":                           "is not a list of plays",
		"- tasks: []\n":                          "has no hosts in play 1",
		"- hosts: all\n- hosts: []\n":            "has no hosts in play 2",
		"- {hosts: , tasks: []}\n":               "has no hosts in play 1",
		"- {hosts: \"\", tasks: []}\n":           "has no hosts in play 1",
		"- hosts: all\n":                         "",
		"- hosts: [all]\n- hosts: \"{{ a }}\"\n": "",
		"- import_playbook: other.yml\n":         "",
		"- ansible.builtin.import_playbook: other.yml\n": "",
		"- &a {hosts: all}\n- {<<: *a, tasks: []}\n":     "",
		"[global]\nioengine=libaio\n":                    "",
		"$ANSIBLE_VAULT;1.1;AES256\n6138\n":              "",
	} {
		if got := Fault(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What a playbook prints without an end fills no disk, and a secret is masked wherever a long line is cut.
func TestOutput(t *testing.T) {
	dir := t.TempDir()
	keep := func(pieces ...string) string {
		env := &verb.Env{Dir: dir, Mask: func(text string) string { return strings.ReplaceAll(text, "opensesame", "***") }}
		o, err := (&Playbook{Filename: "site.yml"}).output(env, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pieces {
			if _, err := o.Write([]byte(p)); err != nil {
				t.Fatal(err)
			}
		}
		path := o.file.Name()
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	line := strings.Repeat("x", 1<<20-1) + "\n"
	long := make([]string, 0, 100)
	for range 99 {
		long = append(long, line)
	}
	text := keep(append(long, "the end\n")...)
	if want := keptHeadBytesMax + keptTailBytesMax; len(text) < want || len(text) > want+100 ||
		!strings.Contains(text, fmt.Sprintf("… %d bytes of output left out …", 99*len(line)+8-want)) || !strings.HasSuffix(text, "x\nthe end\n") {
		t.Errorf("kept %d bytes, which end with %q", len(text), text[len(text)-100:])
	}
	for _, before := range []int{lineBytesMax - 12, lineBytesMax - 5, lineBytesMax, lineBytesMax - secretBytesMax - 5, lineBytesMax - secretBytesMax + 5} {
		for _, piece := range []int{7, 4096, 2 << 20} {
			var pieces []string
			for chunk := range slices.Chunk([]byte(strings.Repeat("y", before)+"opensesame"+strings.Repeat("z", 2*lineBytesMax)+"\n"), piece) {
				pieces = append(pieces, string(chunk))
			}
			if got := keep(pieces...); strings.Contains(got, "opens") || strings.Contains(got, "sesame") {
				t.Errorf("a secret at %d in pieces of %d bytes is in the output", before, piece)
			}
		}
	}
}

func FuzzTasks(f *testing.F) {
	f.Add(recorded)
	f.Add(`{"event": "failed", "host": "\u001b[2J", "task": "a\nb", "seconds": 1e308, "message": "` + strings.Repeat("x", 3000) + `"}` + "\n")
	f.Add("{\"event\": \"ok\", \"seconds\": -1}\nnot JSON\n\xff\x00\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, n := read(text)
		for _, e := range n.events {
			if e.SpanNanos < 0 || strings.ContainsAny(e.Message+e.Error, "\n\x1b\x00") || len(e.Error) > 2*messageBytesMax {
				t.Errorf("event %+v", e)
			}
		}
		if len(got.failures) > failuresMax {
			t.Errorf("%d failures", len(got.failures))
		}
	})
}

// What a playbook lacks is said at once: of the target, this machine and the scenario's folder.
func TestLacks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "here.sh"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	text := `- hosts: all
  tasks:
    - apt: update_cache=yes
      apt: name=default-jre
    - unarchive: {src: vdbench.zip, dest: /tmp, remote_src: no}
    - copy: src=./workload.vdb dest=/tmp
    - copy: {src: /etc/hosts, dest: /tmp, remote_src: yes}
    - copy: src="here.sh" dest=/tmp
    - copy: src=gone.txt dest=/tmp remote_src=True
    - copy: {src: ~/mine, dest: /tmp}
    - copy: {content: text, dest: /tmp}
    - block:
        - script: here.sh -i {{ iterations }}
        - ansible.builtin.script: gone.sh
    - template: {src: "{{ name }}.j2", dest: /tmp}
`
	v := &verb.View{Scenario: &scenario.Scenario{
		Origin: scenario.Origin{Dir: dir, Files: map[string]string{"site.yml": text}},
		Groups: []scenario.Group{{Name: "W", Template: "small"}},
	}}
	v.Inventory.Provider = "local"
	p := &Playbook{Filename: "site.yml", Inventory: []string{"W"}}
	t.Setenv("PATH", dir)
	join := func() string { return strings.Join(p.Lacks(v), "\n") }
	files := "gone.sh, vdbench.zip and workload.vdb in the folder of the scenario, which site.yml copies to the hosts"
	want := `VMs with sshd, which the provider "local" does not have: use libvirt with a cloud image, or ssh, also for this machine
ansible-playbook on this machine (package ansible-core)
ssh on this machine (package openssh-client)
` + files
	if got := join(); got != want {
		t.Errorf("on local %s\nwant %s", got, want)
	}
	v.Inventory.Logins = &target.Logins{Password: true, Without: []string{"small"}, Lacks: []string{"a permission"}}
	want = `a permission
a cloud image as template "small" of group "W": the present one runs no sshd
ansible-playbook on this machine (package ansible-core)
ssh on this machine (package openssh-client)
sshpass on this machine (package sshpass), because logins use a password
` + files
	if got := join(); got != want {
		t.Errorf("on libvirt %s\nwant %s", got, want)
	}
	p.Inventory, v.Inventory.Logins = []string{"nodes", "W", "cvms"}, nil
	const password = "remote_pass for nodes and cvms, because the target has no login for nodes"
	if got := join(); !strings.Contains(got, password) {
		t.Errorf("without a password %s\nwant %s", got, password)
	}
	if p.Password = "secret"; strings.Contains(join(), "remote_pass") {
		t.Errorf("with a password %s", join())
	}
}

// logins knows one host with all VMs, as the target ssh.
type logins struct{ target.Target }

func (logins) LoginVM(_ context.Context, vm target.VM, _ string) (target.Login, error) {
	return target.Login{Machine: "left", Address: "127.0.0.1", Port: 47622, Password: "top secret", HostKey: "ssh-ed25519 AAAA"}, nil
}

type vms struct{ verb.VMs }

func (vms) Of(group string) []target.VM {
	return []target.VM{{Name: group + "-0001", Group: group}, {Name: group + "-0002", Group: group}}
}

// VMs that are processes of one host are one machine of the inventory; its secrets and keys are in private files.
func TestInventoryOfHosts(t *testing.T) {
	p := &Playbook{Inventory: []string{"My Group"}, User: "nutanix", Password: "nutanix/4u"}
	m, err := p.machines(t.Context(), &verb.Env{VMs: vms{}, Target: logins{}})
	if err != nil {
		t.Fatal(err)
	}
	s := &settings{private: t.TempDir()}
	inventory, err := p.inventory(s, m)
	if err != nil {
		t.Fatal(err)
	}
	hosts := inventory["My_Group"].(map[string]any)["hosts"].(map[string]any)
	left, _ := hosts["left"].(map[string]any)
	if len(hosts) != 1 || left["ansible_host"] != "127.0.0.1" || left["ansible_port"] != 47622 || left["ansible_password"] != "top secret" || len(left["bragg_vms"].([]target.VM)) != 2 {
		t.Errorf("hosts %v", hosts)
	}
	args := left["ansible_ssh_common_args"].(string)
	if strings.Contains(args, "secret") || strings.Contains(args, "BatchMode") || !strings.Contains(args, "StrictHostKeyChecking=yes") {
		t.Errorf("options of ssh: %s", args)
	}
	files, _ := filepath.Glob(filepath.Join(s.private, "*"))
	if len(files) != 1 {
		t.Fatalf("files %q", files)
	}
	if text, err := os.ReadFile(files[0]); err != nil || string(text) != "[127.0.0.1]:47622 ssh-ed25519 AAAA\n" {
		t.Errorf("known hosts %q, %v", text, err)
	}
	if got := m.passwords(); !slices.Equal(got, []string{"top secret"}) {
		t.Errorf("passwords %q", got)
	}
}

// A machine that several groups name has the VMs of all; names that would be one group in ansible are refused.
func TestSharedMachine(t *testing.T) {
	p := &Playbook{Inventory: []string{"Clients", "Servers"}}
	m, err := p.machines(t.Context(), &verb.Env{VMs: vms{}, Target: logins{}})
	if err != nil || m["Clients"][0] != m["Servers"][0] || len(m["Clients"][0].vms) != 4 || m["Clients"][0].group() != "" {
		t.Errorf("%v, %v", m, err)
	}
	for _, names := range [][]string{{"A B", "A_B"}, {"all"}, {"ungrouped"}} {
		p.Inventory = names
		if _, err := p.machines(t.Context(), &verb.Env{VMs: vms{}, Target: logins{}}); err == nil || !strings.Contains(err.Error(), "in ansible") {
			t.Errorf("%q: %v", names, err)
		}
	}
	secret := machines{"W": {{name: "w", login: target.Login{Password: `pa"ss`}}}}
	if got := secret.passwords(); !slices.Equal(got, []string{`pa\"ss`, `pa"ss`}) {
		t.Errorf("passwords %q", got)
	}
}
