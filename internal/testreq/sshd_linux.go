package testreq

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SSH is servers of ssh on ports of this machine, with keys and known hosts of their own, as if each was a host.
type SSH struct {
	Folder  string
	Options []string // for ssh -o, required to log in
	Ports   []int
	program string // sshd
	shadow  string // a file that these servers see in place of /etc/shadow; "": none
	servers []*exec.Cmd
}

// SSHD starts count servers of ssh, and ends them and what they started after the test. environment is what sessions
// have: "NAME=VALUE".
func SSHD(t testing.TB, count int, environment ...string) *SSH {
	t.Helper()
	Root(t)
	server := program(t, "sshd", "/usr/sbin/sshd")
	Program(t, "ssh")
	keygen := Program(t, "ssh-keygen")
	// A path without blanks and not too deep: sshd reads it from a file of words.
	folder, err := os.MkdirTemp("", "bragg-ssh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	s := &SSH{Folder: folder, program: server}
	for _, name := range []string{"host", "user"} {
		if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(folder, name)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v %s", err, out)
		}
	}
	key, err := os.ReadFile(filepath.Join(folder, "user.pub"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "authorized"), string(key))
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where sshd goes without privileges
		t.Fatal(err)
	}
	s.Options = []string{
		"UserKnownHostsFile=" + filepath.Join(folder, "known"), "GlobalKnownHostsFile=none", "IdentityFile=" + filepath.Join(folder, "user"),
		"IdentitiesOnly=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no",
	}
	for i := range count {
		s.configure(t, i, environment)
	}
	s.knowAll(t)
	return s
}

// program is Program for one that may lie outside of PATH.
func program(t testing.TB, name, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return Program(t, name)
}

// configure chooses a port for a server and starts it.
func (s *SSH) configure(t testing.TB, number int, environment []string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(s.Folder, fmt.Sprint("config", number))
	set := ""
	if len(environment) > 0 {
		set = "SetEnv"
		for _, e := range environment {
			set += " " + strconv.Quote(strings.ReplaceAll(e, "%d", strconv.Itoa(number)))
		}
	}
	write(t, config, fmt.Sprintf(`Port %d
ListenAddress 127.0.0.1
HostKey %s/host
AuthorizedKeysFile %s/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
Subsystem sftp internal-sftp
%s
`, port, s.Folder, s.Folder, set))
	s.Ports, s.servers = append(s.Ports, port), append(s.servers, nil)
	s.Serve(t, number)
}

// Serve starts a server again that was cut.
func (s *SSH) Serve(t testing.TB, number int) {
	t.Helper()
	cmd := exec.Command(s.program, "-D", "-e", "-f", filepath.Join(s.Folder, fmt.Sprint("config", number)))
	if s.shadow != "" {
		cmd = exec.Command("unshare", append([]string{"-m", "sh", "-c", "mount --bind '" + s.shadow + `' /etc/shadow && exec "$@"`, "sh"}, cmd.Args...)...)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.servers[number] = cmd
	t.Cleanup(func() {
		for _, id := range descendants(cmd.Process.Pid) {
			_ = syscall.Kill(id, syscall.SIGKILL)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", s.Ports[number]))
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(until) {
			t.Fatalf("sshd does not listen: %v\n%s", err, log.String())
		}
	}
}

// LetPassword makes root log in to a server with a password, which no other program of this machine accepts.
func (s *SSH) LetPassword(t testing.TB, number int, password string) {
	t.Helper()
	hash, err := exec.Command("perl", "-e", `print crypt($ARGV[0], "\$6\$bragg\$")`, password).Output()
	if err != nil {
		t.Fatal(err)
	}
	users, err := os.ReadFile("/etc/shadow")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(users), "\n")
	for i, line := range lines {
		if fields := strings.Split(line, ":"); fields[0] == "root" {
			fields[1] = string(hash)
			lines[i] = strings.Join(fields, ":")
		}
	}
	s.shadow = filepath.Join(s.Folder, "shadow")
	write(t, s.shadow, strings.Join(lines, "\n"))
	config := filepath.Join(s.Folder, fmt.Sprint("config", number))
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, strings.Replace(string(text), "PasswordAuthentication no", "PasswordAuthentication yes", 1))
	_ = s.servers[number].Process.Kill()
	_ = s.servers[number].Wait()
	s.Serve(t, number)
}

// knowAll writes the hosts' keys where ssh looks for them.
func (s *SSH) knowAll(t testing.TB) {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(s.Folder, "host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	var known strings.Builder
	for _, port := range s.Ports {
		fmt.Fprintf(&known, "[127.0.0.1]:%d %s", port, key)
	}
	write(t, filepath.Join(s.Folder, "known"), known.String())
}

// Hosts are the servers as the value of --hosts.
func (s *SSH) Hosts() []string {
	var out []string
	for _, port := range s.Ports {
		out = append(out, fmt.Sprint("127.0.0.1:", port))
	}
	return out
}

// KillServer kills a server and its sessions, but not their children: to ssh this is a lost connection.
func (s *SSH) KillServer(t testing.TB, number int) {
	t.Helper()
	server := s.servers[number].Process
	cut := 0
	for _, id := range descendants(server.Pid) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", id)); err == nil && strings.HasPrefix(string(name), "sshd") {
			_ = syscall.Kill(id, syscall.SIGKILL)
			cut++
		}
	}
	if cut == 0 {
		t.Error("no session is there to be cut")
	}
	_ = server.Kill()
}

// Break kills the sessions of a server, and neither the server nor what they have started, and returns how many there were.
func (s *SSH) Break(number int) int {
	broken := 0
	for _, id := range s.Sessions(number) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", id)); err == nil && strings.HasPrefix(string(name), "sshd") {
			_ = syscall.Kill(id, syscall.SIGKILL)
			broken++
		}
	}
	return broken
}

// TargetFile writes a target file in which the servers are the nodes node-1, node-2, …, with VMs below pool.
func (s *SSH) TargetFile(t testing.TB, pool string) string {
	t.Helper()
	var nodes strings.Builder
	for i, host := range s.Hosts() {
		fmt.Fprintf(&nodes, "  - {id: node-%d, address: %q}\n", i+1, host)
	}
	file := filepath.Join(s.Folder, "target.yml")
	write(t, file, fmt.Sprintf("provider: ssh\nname: hosts\npool: %q\nnodes:\n%soptions:\n  ssh_options: %q\n", pool, nodes.String(),
		strings.Join(s.Options, " ")))
	return file
}

// Sessions are the processes that a server has started.
func (s *SSH) Sessions(number int) []int { return descendants(s.servers[number].Process.Pid) }

// descendants returns the children of a process and theirs.
func descendants(id int) []int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", id, id))
	if err != nil {
		return nil
	}
	var out []int
	for _, field := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			out = append(out, child)
			out = append(out, descendants(child)...)
		}
	}
	return out
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
