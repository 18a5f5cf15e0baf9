package playbook_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/plan"
	"github.com/braggdev/bragg/internal/playbook"
	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/sshlink"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/testreq"
	"github.com/braggdev/bragg/internal/verb"
)

// TestMain is also a process that runs a playbook until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(helperVariable); dir != "" {
		text, err := os.ReadFile(filepath.Join(dir, "options"))
		if err == nil {
			l := &lab{dir: dir, options: strings.Fields(string(text)), ports: []int{0}}
			if _, err = fmt.Sscan(os.Getenv(portVariable), &l.ports[0]); err == nil {
				err = l.book("long.yml").Run(context.Background(), l.env())
			}
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

const (
	helperVariable = "BRAGG_TEST_PLAYBOOK"
	portVariable   = "BRAGG_TEST_PLAYBOOK_PORT"
)

// lab is machines that run sshd, in place of VMs, and the folder of a scenario.
type lab struct {
	dir     string
	options []string
	ports   []int
	key     string // of the hosts, as the target knows it
	servers *testreq.SSH
	login   func(l *target.Login)

	mu     sync.Mutex
	events []interval.Event
	doubts []string
}

func newLab(t *testing.T, count int, files map[string]string) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("runs Ansible against servers of ssh")
	}
	t.Parallel()
	testreq.Program(t, "ansible-playbook")
	// Short, because the path of a socket has a bound.
	dir, err := os.MkdirTemp("", "bragg-book")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	servers := testreq.SSHD(t, count)
	l := &lab{dir: dir, ports: servers.Ports, options: servers.Options, servers: servers}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	key, err := os.ReadFile(filepath.Join(servers.Folder, "host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	l.key = strings.Join(strings.Fields(string(key))[:2], " ")
	return l
}

func (l *lab) book(name string) *playbook.Playbook {
	return &playbook.Playbook{Filename: name, Inventory: []string{"Workers"}, User: "root", Password: "nutanix/4u", Forks: 5,
		Variables: map[string]any{"iterations": 3}}
}

func (l *lab) env() *verb.Env {
	return &verb.Env{
		VMs: groups{l}, Notes: l, Target: logins{l}, Plan: &plan.Plan{}, Step: plan.Step{ID: 4},
		Scenario: &scenario.Scenario{Origin: scenario.Origin{Dir: l.dir}}, Dir: l.dir, Private: filepath.Join(l.dir, "p"),
		Mask: func(text string) string { return strings.ReplaceAll(text, "opensesame", "***") },
	}
}

func (l *lab) Annotate(string)        {}
func (l *lab) Log(string)             {}
func (l *lab) Disturb(_, text string) { l.doubts = append(l.doubts, text) }

func (l *lab) Event(e interval.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// texts are the events without their times.
func (l *lab) texts() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		text, _, _ := strings.Cut(e.Message, " in ") // without the time
		out = append(out, strings.TrimSpace(fmt.Sprint(e.Kind, " ", e.Subject, " ", text, " ", e.Error)))
	}
	return out
}

// groups is one VM per server.
type groups struct{ *lab }

func (g groups) Of(string) (vms []target.VM) {
	for i := range g.ports {
		vms = append(vms, target.VM{ID: fmt.Sprint("id-", i), Name: fmt.Sprintf("Workers-%04d", i+1), Group: "Workers", Ordinal: i,
			Disks: []target.Disk{{Device: "/dev/sdb", Path: filepath.Join(g.dir, fmt.Sprint("disk", i)), SizeBytes: 1 << 20}}})
	}
	return vms
}
func (groups) Deploy(context.Context, string) ([]target.VM, error)          { return nil, nil }
func (groups) Grow(context.Context, string, int, bool) ([]target.VM, error) { return nil, nil }
func (groups) Delete(context.Context) error                                 { return nil }
func (groups) Refresh(context.Context) error                                { return nil }

// logins is a target whose VMs run sshd.
type logins struct{ *lab }

func (l logins) LoginVM(_ context.Context, vm target.VM, _ string) (target.Login, error) {
	login := target.Login{Machine: "host-of-" + vm.Name, Address: "127.0.0.1", Port: l.ports[vm.Ordinal], User: "root", Options: l.options, Configured: true}
	if l.login != nil {
		l.login(&login)
	}
	return login, nil
}
func (logins) Inventory(context.Context) (target.Inventory, error) { return target.Inventory{}, nil }
func (logins) Create(context.Context, target.Tag, []target.VMSpec) ([]target.VM, error) {
	return nil, nil
}
func (logins) Delete(context.Context, target.Tag, []target.VM) error  { return nil }
func (logins) Owned(context.Context, target.Tag) ([]target.VM, error) { return nil, nil }
func (logins) Close() error                                           { return nil }

const siteText = `- hosts: all
  gather_facts: no
  tasks:
    - name: Say it
      shell: echo {{ iterations }} {{ groups['Workers'] | length }} opensesame {{ output_directory }}
      register: said
    - debug: msg="{{ said.stdout }}"
    - name: Copy a job
      copy: {src: job.fio, dest: "{{ bragg_vms[0].disks[0].path }}.fio"}
    - name: Run fio
      shell: "fio --output-format=json --filename={{ bragg_vms[0].disks[0].path }} {{ bragg_vms[0].disks[0].path }}.fio"
      register: fio
    - name: Keep the report
      copy: {content: "{{ fio.stdout }}", dest: "{{ output_directory }}/{{ bragg_vms[0].name }}.json"}
      delegate_to: localhost
    - name: Simulate
      script: sim.sh -i {{ iterations }}
    - name: May fail
      shell: exit 3
      ignore_errors: yes
`

const jobText = "[job]\nrw=write\nbs=4k\nsize=64k\n"

func TestRun(t *testing.T) {
	testreq.Program(t, "fio")
	l := newLab(t, 2, map[string]string{"site.yml": siteText, "job.fio": jobText, "sim.sh": "#!/bin/sh\ntest \"$2\" = 3\n"})
	if err := l.book("site.yml").Run(t.Context(), l.env()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, text := range l.texts() {
		seen[text]++
	}
	want := map[string]int{}
	for name, outcome := range map[string]string{"Say it": "changed", "debug": "ok", "Copy a job": "changed", "Run fio": "changed", "Keep the report": "changed",
		"Simulate": "changed", "May fail": "failed"} {
		want["task-started  site.yml: "+name]++
		for i := range 2 {
			text := fmt.Sprintf("task-ended Workers-%04d %s: %s", i+1, name, outcome)
			want[text]++
		}
	}
	if !maps.Equal(seen, want) {
		t.Errorf("events %v, want %v", seen, want)
	}
	for i := range 2 {
		text, err := os.ReadFile(filepath.Join(l.dir, fmt.Sprintf("Workers-%04d.json", i+1)))
		if err != nil || !strings.Contains(string(text), `"total_ios": 16`) {
			t.Errorf("the report of fio: %v %.200s", err, text)
		}
	}
	log, err := os.ReadFile(filepath.Join(l.dir, "playbook-4-site.log"))
	if err != nil || !strings.Contains(string(log), "3 2 *** ") || strings.Contains(string(log), "opensesame") || strings.Contains(string(log), "WARNING") {
		t.Errorf("the output, %v:\n%s", err, log)
	}
	l.clean(t)
}

// clean reports files and processes that are left.
func (l *lab) clean(t *testing.T) {
	t.Helper()
	left, _ := filepath.Glob(filepath.Join(l.dir, "p", "playbook-*"))
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		processes := l.processes()
		if len(processes) == 0 {
			break
		}
		if time.Now().After(until) {
			left = append(left, processes...)
			break
		}
	}
	if len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// processes are those that have the folder in their command line, or the mark of the long playbook.
func (l *lab) processes() (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), l.dir) {
			found = append(found, path+" "+strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

// A failure names the playbook's task, the VM and the reason, of a command, of a loop, and of a machine that does not answer.
func TestFailures(t *testing.T) {
	head := "- hosts: all\n  gather_facts: no\n  tasks:\n    - name: Break\n      "
	l := newLab(t, 1, map[string]string{
		"shell.yml":  head + "shell: echo no such thing as opensesame >&2; exit 4\n",
		"loop.yml":   head + "shell: test {{ item }} != two || { echo item two fails; exit 1; }\n      with_items: [one, two]\n",
		"syntax.yml": head + "shel: {chdir: /}\n",
		"hidden.yml": head + "shell: echo confidential >&2; exit 4\n      no_log: true\n",
		"rescue.yml": "- hosts: all\n  gather_facts: no\n  tasks:\n    - block:\n        - name: Handled\n          shell: exit 3\n      rescue:\n        - shell: exit 0\n" +
			"    - name: Not handled\n      shell: exit 5\n",
	})
	for name, want := range map[string]string{
		"shell.yml":  `task "Break" on Workers-0001 failed: non-zero return code: no such thing as ***`,
		"loop.yml":   `task "Break" on Workers-0001 failed: non-zero return code: item two fails`,
		"syntax.yml": `couldn't resolve module/action 'shel'`,
		"hidden.yml": `task "Break" on Workers-0001 failed`,
		"rescue.yml": `task "Not handled" on Workers-0001 failed: non-zero return code`,
	} {
		err := l.book(name).Run(t.Context(), l.env())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "confidential") || strings.Contains(err.Error(), "more)") {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	l.options = append(l.options[:0:0], "UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=yes")
	if err := l.book("shell.yml").Run(t.Context(), l.env()); err == nil || !strings.Contains(err.Error(), `on Workers-0001 unreachable: `) {
		t.Errorf("an unknown host: %v", err)
	}
	l.clean(t)
}

// A playbook that ansible calls a success although no play had a machine has failed.
func TestNoMachine(t *testing.T) {
	l := newLab(t, 1, map[string]string{
		"none.yml": "- hosts: clients\n  gather_facts: no\n  tasks: [{name: Load, shell: exit 0}]\n",
		"end.yml":  "- hosts: all\n  gather_facts: no\n  tasks: [{meta: end_play}]\n",
		"long.yml": "- hosts: all\n  gather_facts: no\n  tasks: [{name: \"{{ 'long' * 50000 }}\", shell: exit 0}]\n",
		"half.yml": "- hosts: all\n  gather_facts: no\n  tasks: [{name: Load, shell: exit 0}]\n- hosts: clients\n  tasks: []\n",
	})
	for name, want := range map[string]string{"none.yml": `no task ran: no machine of the inventory matches the play "clients"`, "end.yml": "", "half.yml": "", "long.yml": ""} {
		err := l.book(name).Run(t.Context(), l.env())
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%s: %s", name, got)
		}
	}
	want := []string{`playbook "end.yml": no task ran`, `playbook "half.yml": no machine of the inventory matches the play "clients"`}
	slices.Sort(l.doubts)
	if !slices.Equal(l.doubts, want) {
		t.Errorf("doubts %q", l.doubts)
	}
	l.clean(t)
}

// Host keys: one that the target knows must be shown; else the first one that a machine shows must stay.
func TestHostKeys(t *testing.T) {
	l := newLab(t, 1, map[string]string{"site.yml": "- hosts: all\n  gather_facts: no\n  tasks: [{name: Ask, raw: ls}]\n"})
	key, err := os.ReadFile(identity(l.options))
	if err != nil {
		t.Fatal(err)
	}
	own := func(hostKey string) {
		l.login = func(login *target.Login) {
			login.Configured, login.Options, login.Key, login.HostKey = false, nil, string(key), hostKey
		}
	}
	wrong := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS"
	for _, c := range []struct {
		key string
		ok  bool
	}{{l.key, true}, {wrong, false}, {"", true}, {"", true}} {
		own(c.key)
		if err := l.book("site.yml").Run(t.Context(), l.env()); (err == nil) != c.ok {
			t.Errorf("with host key %q: %v", c.key, err)
		}
	}
	known, err := os.ReadFile(filepath.Join(l.dir, "p", "known_hosts"))
	if err != nil || strings.Count(string(known), "\n") == 0 {
		t.Errorf("known hosts of the run: %q, %v", known, err)
	}
	if err := os.WriteFile(filepath.Join(l.dir, "p", "known_hosts"), fmt.Appendf(nil, "[127.0.0.1]:%d %s\n", l.ports[0], wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.book("site.yml").Run(t.Context(), l.env()); err == nil {
		t.Error("a machine with another key than before was accepted")
	}
}

// A login with a password needs no key, and the password is in no output.
func TestPassword(t *testing.T) {
	testreq.Program(t, "sshpass")
	const password = "horse battery staple"
	l := newLab(t, 1, map[string]string{
		"site.yml": "- hosts: all\n  gather_facts: no\n  tasks: [{name: Say, shell: \"echo {{ ansible_password }}\", register: said}, {debug: {var: said.stdout}}]\n"})
	l.servers.LetPassword(t, 0, password)
	l.login = func(login *target.Login) {
		login.Configured, login.Options, login.Password, login.HostKey = false, []string{"IdentityFile=none"}, password, l.key
	}
	if err := l.book("site.yml").Run(t.Context(), l.env()); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(l.dir, "playbook-4-site.log"))
	if err != nil || !strings.Contains(string(log), `"said.stdout": "***"`) || strings.Contains(string(log), password) {
		t.Errorf("the output, %v:\n%s", err, log)
	}
	l.login = func(login *target.Login) {
		login.Configured, login.Options, login.Password, login.HostKey = false, nil, "wrong", l.key
	}
	if err := l.book("site.yml").Run(t.Context(), l.env()); err == nil || !strings.Contains(err.Error(), "on Workers-0001 unreachable") {
		t.Errorf("with a wrong password: %v", err)
	}
	l.clean(t)
}

// A machine that only another host reaches is logged in to through that one.
func TestThroughAnotherHost(t *testing.T) {
	l := newLab(t, 2, map[string]string{"site.yml": "- hosts: all\n  gather_facts: no\n  tasks: [{name: Ask, raw: ls}]\n"})
	key, err := os.ReadFile(identity(l.options))
	if err != nil {
		t.Fatal(err)
	}
	gate, err := sshlink.ParseHost(fmt.Sprintf("root@127.0.0.1:%d", l.ports[0]))
	if err != nil {
		t.Fatal(err)
	}
	l.ports = l.ports[1:]
	l.login = func(login *target.Login) {
		login.Configured, login.Key, login.HostKey = false, string(key), l.key
		login.Options = []string{"ProxyCommand=" + gate.Relay(l.options)}
	}
	if err := l.book("site.yml").Run(t.Context(), l.env()); err != nil {
		t.Fatal(err)
	}
	gate.Port = 1 // where no sshd is
	if err := l.book("site.yml").Run(t.Context(), l.env()); err == nil || !strings.Contains(err.Error(), "on Workers-0001 unreachable") {
		t.Errorf("through a host without sshd: %v", err)
	}
	l.clean(t)
}

func identity(options []string) string {
	for _, o := range options {
		if path, ok := strings.CutPrefix(o, "IdentityFile="); ok {
			return path
		}
	}
	return ""
}

const longText = "- hosts: all\n  gather_facts: no\n  tasks: [{name: Last, shell: \"touch {{ output_directory }}/began; sleep 1000 # {{ output_directory }}\"}]\n"

// begun waits until the task runs on the machine.
func (l *lab) begun(t *testing.T) {
	t.Helper()
	for until := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(l.dir, "began")); err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatal("the task did not begin")
		}
	}
}

// A playbook that is cancelled, and one whose controller is killed, end on both sides.
func TestEnds(t *testing.T) {
	t.Run("cancelled", func(t *testing.T) {
		l := newLab(t, 1, map[string]string{"long.yml": longText})
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped by the user")
		go func() {
			l.begun(t)
			cancel(stopped)
		}()
		if err := l.book("long.yml").Run(ctx, l.env()); !errors.Is(err, stopped) {
			t.Errorf("the playbook ended with %v", err)
		}
		l.clean(t)
	})
	t.Run("killed", func(t *testing.T) {
		l := newLab(t, 1, map[string]string{"long.yml": longText})
		if err := os.WriteFile(filepath.Join(l.dir, "options"), []byte(strings.Join(l.options, " ")), 0o600); err != nil {
			t.Fatal(err)
		}
		helper := exec.Command(os.Args[0])
		helper.Env = append(os.Environ(), helperVariable+"="+l.dir, fmt.Sprint(portVariable, "=", l.ports[0]))
		if err := helper.Start(); err != nil {
			t.Fatal(err)
		}
		l.begun(t)
		_ = helper.Process.Kill()
		_ = helper.Wait()
		// What it wrote is removed with the journal.
		if err := os.RemoveAll(filepath.Join(l.dir, "p")); err != nil {
			t.Error(err)
		}
		l.clean(t)
	})
}
