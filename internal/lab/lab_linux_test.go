package lab_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/chassis"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/testreq"
)

// makeAndWait in the environment makes the test's program make a lab of that name, and hold it.
const makeAndWait = "BRAGG_TEST_MAKE_LAB"

func TestMain(m *testing.M) {
	labtest.Main()
	if name := os.Getenv(makeAndWait); name != "" {
		self, err := os.Executable()
		if err == nil {
			_, _, err = lab.Up(context.Background(), lab.Options{
				Name: name, Labs: labtest.Labs(), Hosts: 1, SSH: true, NoLibvirt: true, Program: self, Attached: true,
			})
		}
		fmt.Println("made", err)
		select {}
	}
	os.Exit(m.Run())
}

// light is a lab that is made quickly.
func light() lab.Options { return lab.Options{Hosts: 1, SSH: true, NoLibvirt: true} }

func short(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs hosts with libvirt or ssh")
	}
}

// eventually waits for something; the limit only guards against hanging.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(3 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("in vain: ", what)
		}
	}
}

// bmc is a client of one BMC, which knows its certificate.
type bmc struct {
	t        *testing.T
	host     lab.Host
	password string
	client   *http.Client
}

func newBMC(t *testing.T, l *lab.Lab, number int) *bmc {
	t.Helper()
	password, err := os.ReadFile(l.BMCPasswordFile())
	if err != nil {
		t.Fatal(err)
	}
	h := l.Hosts[number]
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true,
		VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
			if sum := sha256.Sum256(raw[0]); hex.EncodeToString(sum[:]) != h.Fingerprint {
				return errors.New("another certificate")
			}
			return nil
		},
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &bmc{t, h, string(password), &http.Client{Transport: transport}}
}

func (b *bmc) ask(method, path, body string) (int, map[string]any) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, "https://"+b.host.BMC.String()+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	request.SetBasicAuth(chassis.User, b.password)
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil && !errors.Is(err, io.EOF) {
		b.t.Fatal(err)
	}
	return response.StatusCode, answer
}

func (b *bmc) reset(kind string) {
	b.t.Helper()
	code, answer := b.ask(http.MethodPost, "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", fmt.Sprintf(`{"ResetType":%q}`, kind))
	if code != http.StatusNoContent {
		b.t.Fatalf("%s: %d %v", kind, code, answer)
	}
}

func (b *bmc) power() string {
	b.t.Helper()
	_, system := b.ask(http.MethodGet, "/redfish/v1/Systems/1", "")
	return fmt.Sprint(system["PowerState"])
}

// listens reports whether a host's server of ssh answers.
func listens(h lab.Host) bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(h.Address.String(), "22"), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(30*time.Second)) != nil {
		return false
	}
	banner, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && strings.HasPrefix(banner, "SSH-2.0-")
}

// sshTo runs a command on a host with the keys of the lab, each of them checked.
func sshTo(t *testing.T, l *lab.Lab, h lab.Host, command string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), testreq.Program(t, "ssh"), "-F", "none", "-i", l.SSHKeyFile(), "-o", "BatchMode=yes",
		"-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile="+l.KnownHostsFile(), "-o", "GlobalKnownHostsFile=none",
		lab.SSHUser+"@"+h.Address.String(), command).CombinedOutput()
	return string(out), err
}

// A power cut kills what runs on the host, however it was started, and the network with it; the BMC reads back what is.
func TestPowerOfAHost(t *testing.T) {
	short(t)
	l := labtest.New(t, lab.Options{Hosts: 2, SSH: true, NoLibvirt: true})
	b, other, h := newBMC(t, l, 0), newBMC(t, l, 1), l.Hosts[0]
	if _, system := b.ask(http.MethodGet, "/redfish/v1/Systems/1", ""); system["UUID"] != h.UUID || system["SerialNumber"] != h.Serial {
		t.Errorf("the BMC is that of another: %v", system)
	}
	mark := "LAB_TEST_" + l.ID
	script := "MARK=" + mark + " setsid sleep 86399 </dev/null >/dev/null 2>&1 & cat /etc/machine-id; hostname; echo " + mark + " >/tmp/mark"
	if out, err := sshTo(t, l, h, script); err != nil || out != strings.ReplaceAll(h.UUID, "-", "")+"\n"+h.Name+"\n" {
		t.Fatalf("%q, %v", out, err)
	}
	bootID := func(h lab.Host) string {
		out, err := sshTo(t, l, h, "cat /proc/sys/kernel/random/boot_id")
		if err != nil {
			t.Error(out, err)
		}
		return out
	}
	before := bootID(h)
	if before == bootID(l.Hosts[1]) || before != bootID(h) {
		t.Error("boot ids are not those of hosts")
	}
	sleeps := func() int { return len(testreq.ProcessesNaming(t, mark)) }
	eventually(t, "the host's process runs", func() bool { return sleeps() > 0 })
	if out, err := sshTo(t, l, l.Hosts[1], "ls /tmp"); err != nil || strings.Contains(out, "mark") {
		t.Errorf("the other host sees %q, %v", out, err)
	}
	b.reset("ForceOff")
	if n := sleeps(); n != 0 || b.power() != "Off" || listens(h) {
		t.Errorf("off, and %d processes are left, power is %s, it listens: %v", n, b.power(), listens(h))
	}
	if other.power() != "On" || !listens(l.Hosts[1]) {
		t.Error("the other host was cut too")
	}
	b.reset("ForceOff")
	b.reset("On")
	if b.power() != "On" {
		t.Error("on, and power is", b.power())
	}
	eventually(t, "the host boots", func() bool { return listens(h) })
	if out, err := sshTo(t, l, h, "cat /tmp/mark"); err != nil || out != mark+"\n" {
		t.Errorf("its disk holds %q, %v", out, err)
	}
	if bootID(h) == before {
		t.Error("it has booted, and its boot id is the same")
	}
	b.reset("GracefulShutdown")
	eventually(t, "it shuts down", func() bool { return b.power() == "Off" })
	b.reset("PushPowerButton")
	eventually(t, "the host boots", func() bool { return listens(h) })
	b.reset("ForceRestart")
	eventually(t, "the host boots", func() bool { return listens(h) })
}

// A cable is pulled: the host keeps running and is unreachable.
func TestLinkOfAHost(t *testing.T) {
	short(t)
	l := labtest.New(t, light())
	if err := l.Link(t.Context(), "host-1", false); err != nil {
		t.Fatal(err)
	}
	if listens(l.Hosts[0]) {
		t.Error("it is reached without a cable")
	}
	status, err := l.Status(t.Context())
	if err != nil || len(status) != 1 || status[0].Power != chassis.PowerOn || !status[0].Up {
		t.Errorf("%+v, %v", status, err)
	}
	if err := l.Link(t.Context(), "host-1", true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is reached again", func() bool { return listens(l.Hosts[0]) })
	if err := l.Reset(t.Context(), "host-2", chassis.ResetForceOff); diag.ExitCode(err) != diag.ExitUsage {
		t.Errorf("a host that is not there: %v", err)
	}
	if err := l.Reset(t.Context(), "host-1", "Explode"); err == nil {
		t.Error("a reset that is not there was done")
	}
}

func TestIPMI(t *testing.T) {
	short(t)
	o := light()
	o.IPMI = true
	l := labtest.New(t, o)
	ipmi := func(words ...string) string {
		cmd := exec.CommandContext(t.Context(), testreq.Program(t, "ipmitool"), append([]string{
			"-I", "lanplus", "-C", "3", "-H", l.Hosts[0].BMC.String(), "-U", chassis.User, "-f", l.BMCPasswordFile(),
		}, words...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", words, err, out)
		}
		return string(out)
	}
	if out := ipmi("chassis", "power", "status"); !strings.Contains(out, "is on") {
		t.Error(out)
	}
	if out := ipmi("fru", "print", "0"); !strings.Contains(out, "Product Serial        : "+l.Hosts[0].Serial) {
		t.Error(out)
	}
	if out := ipmi("mc", "guid"); !strings.Contains(out, l.Hosts[0].UUID) {
		t.Error(out)
	}
	ipmi("chassis", "power", "off")
	eventually(t, "power is off", func() bool { return strings.Contains(ipmi("chassis", "power", "status"), "is off") })
	if listens(l.Hosts[0]) || newBMC(t, l, 0).power() != "Off" {
		t.Error("it is not off")
	}
	ipmi("chassis", "power", "on")
	eventually(t, "the host boots", func() bool { return listens(l.Hosts[0]) })
	if out := ipmi("chassis", "power", "status"); !strings.Contains(out, "is on") {
		t.Error(out)
	}
}

// Two labs do not know of each other.
func TestTwoLabs(t *testing.T) {
	short(t)
	made := make(chan *lab.Lab, 2)
	t.Run("side by side", func(t *testing.T) {
		for range 2 {
			t.Run("lab", func(t *testing.T) {
				t.Parallel()
				l := labtest.New(t, light())
				made <- l
				eventually(t, "both are up", func() bool { return len(made) == 2 })
				if !listens(l.Hosts[0]) {
					t.Error("a host is not up")
				}
			})
		}
	})
	a, b := <-made, <-made
	if a.Subnet.Overlaps(b.Subnet) || a.Interface == b.Interface {
		t.Errorf("both have %s %s", a.Subnet, a.Interface)
	}
}

func folderOf(name string) string { return filepath.Join(labtest.Labs(), name) }

func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

// hasInterface reports whether this machine has a network interface.
func hasInterface(t *testing.T, name string) bool {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Name == name {
			return true
		}
	}
	return false
}

// A lab whose maker is killed ends by itself, whenever that happens.
func TestMakerIsKilled(t *testing.T) {
	short(t)
	for _, wait := range []time.Duration{0, 30 * time.Millisecond, 150 * time.Millisecond, -1} {
		t.Run(wait.String(), func(t *testing.T) {
			o := labtest.Options(t, light())
			cmd := exec.Command(o.Program)
			cmd.Env = append(os.Environ(), makeAndWait+"="+o.Name)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			var l *lab.Lab
			if wait < 0 {
				line, err := bufio.NewReader(out).ReadString('\n')
				if err != nil || line != "made <nil>\n" {
					t.Fatalf("%q, %v", line, err)
				}
				if l, err = lab.Find(o.Labs, o.Name); err != nil || !listens(l.Hosts[0]) {
					t.Fatalf("the lab is not up: %v", err)
				}
			} else {
				eventually(t, "the folder is made", func() bool { return !gone(folderOf(o.Name)) })
				time.Sleep(wait)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			// Where the keeper was not started, it is the next lab that removes the folder.
			eventually(t, "no process is left", func() bool { return len(testreq.ProcessesNaming(t, folderOf(o.Name))) == 0 })
			// A keeper that is being executed has no command line and no environment to be found by.
			eventually(t, "no keeper is left", func() bool {
				labs, err := lab.Labs(o.Labs)
				return err == nil && !slices.ContainsFunc(labs, func(l *lab.Lab) bool { return l.Dir == folderOf(o.Name) && l.Alive() })
			})
			if l != nil {
				eventually(t, "the lab is gone", func() bool { return gone(l.Dir) && !hasInterface(t, l.Interface) })
			}
			if _, err := lab.Down(t.Context(), o.Labs, nil, false); err != nil {
				t.Error(err)
			}
			if !gone(filepath.Join(folderOf(o.Name), "lab.json")) {
				t.Error("the folder is left")
			}
		})
	}
}

// A lab whose keeper is killed has no processes and no interface any more; its folder is found by the next lab.
func TestKeeperIsKilled(t *testing.T) {
	short(t)
	o := labtest.Options(t, light())
	l, hold, err := lab.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	if err := unix.Kill(l.Keeper.ID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all processes are gone", func() bool { return len(testreq.ProcessesNaming(t, l.Dir)) == 0 })
	eventually(t, "the interface is gone", func() bool { return !hasInterface(t, l.Interface) })
	eventually(t, "it is known to be dead", func() bool { return !l.Alive() })
	if _, err := lab.Find(o.Labs, o.Name); diag.ExitCode(err) != diag.ExitUnavailable {
		t.Errorf("a dead lab is found: %v", err)
	}
	if gone(l.Dir) {
		t.Error("who removed the folder?")
	}
	next := labtest.New(t, light())
	if !gone(l.Dir) {
		t.Error("the next lab did not remove the folder")
	}
	if next.Name == l.Name || !listens(next.Hosts[0]) {
		t.Error("the next lab is not up")
	}
}

// Down may be called again, and does nothing to a lab that is not named.
func TestDown(t *testing.T) {
	short(t)
	kept := labtest.New(t, light())
	o := labtest.Options(t, light())
	o.Attached = false
	l, hold, err := lab.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := lab.Up(t.Context(), o); diag.ExitCode(err) != diag.ExitLocked {
		t.Errorf("a lab was made over another: %v", err)
	}
	for i, want := range []string{l.Name, ""} {
		removed, err := lab.Down(t.Context(), o.Labs, []string{l.Name}, false)
		if err != nil || strings.Join(removed, " ") != want {
			t.Errorf("down %d: %q, %v", i+1, removed, err)
		}
	}
	if !gone(l.Dir) || hasInterface(t, l.Interface) || len(testreq.ProcessesNaming(t, l.Dir)) != 0 {
		t.Error("something is left")
	}
	if !listens(kept.Hosts[0]) {
		t.Error("the other lab was hurt")
	}
}

// A lab that does not come up leaves nothing, and says why.
func TestUpFails(t *testing.T) {
	short(t)
	failures := map[string]struct {
		change func(*lab.Options)
		want   string
	}{
		"no template":                 {func(o *lab.Options) { o.Templates = map[string]string{"x": "/nowhere"} }, `template "x"`},
		"a device as template":        {func(o *lab.Options) { o.Templates = map[string]string{"x": "/dev/null"} }, "neither a file nor a directory"},
		"no program":                  {func(o *lab.Options) { o.Program = "/nowhere" }, "start the keeper"},
		"a program that does nothing": {func(o *lab.Options) { o.Program = "/bin/true" }, "its keeper ended"},
	}
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			o := labtest.Options(t, light())
			f.change(&o)
			if _, _, err := lab.Up(t.Context(), o); err == nil || !strings.Contains(err.Error(), f.want) {
				t.Errorf("%v, want %s", err, f.want)
			}
			if !gone(folderOf(o.Name)) {
				t.Error("the folder is left")
			}
		})
	}
	t.Run("stopped", func(t *testing.T) {
		o := labtest.Options(t, light())
		ctx, stop := context.WithCancel(t.Context())
		o.Say = func(string) { stop() } // while hosts boot
		if _, _, err := lab.Up(ctx, o); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if !gone(folderOf(o.Name)) || len(testreq.ProcessesNaming(t, folderOf(o.Name))) != 0 {
			t.Error("something is left")
		}
	})
}

// On a full disk a lab does not come up, and says so.
func TestFullDisk(t *testing.T) {
	short(t)
	for _, size := range []string{"4k", "24k", "64k"} {
		t.Run(size, func(t *testing.T) {
			o := labtest.Options(t, light())
			o.Labs = filepath.Join(t.TempDir(), "labs")
			if err := os.Mkdir(o.Labs, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("tmpfs", o.Labs, "tmpfs", 0, "mode=700,size="+size); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := unix.Unmount(o.Labs, 0); err != nil {
					t.Error(err)
				}
			}()
			// A big template takes what is left.
			template := filepath.Join(t.TempDir(), "image")
			if err := os.WriteFile(template, make([]byte, 1<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			o.Templates = map[string]string{"image": template}
			if _, _, err := lab.Up(t.Context(), o); !errors.Is(err, unix.ENOSPC) {
				t.Errorf("made on a full disk: %v", err)
			}
			if !gone(filepath.Join(o.Labs, o.Name)) {
				t.Error("the folder is left")
			}
		})
	}
}

// Directories that are not labs, and mounts that a lab did not make, are not touched.
func TestForeignFolders(t *testing.T) {
	short(t)
	o := labtest.Options(t, light())
	o.Labs = filepath.Join(t.TempDir(), "labs")
	if err := os.Mkdir(o.Labs, 0o700); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(o.Labs, o.Name, "precious")
	if err := errors.Join(os.Mkdir(filepath.Dir(precious), 0o700), os.WriteFile(precious, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := lab.Up(t.Context(), o); diag.ExitCode(err) != diag.ExitRefused {
		t.Errorf("up in a foreign folder: %v", err)
	}
	for _, state := range []string{`{}`, `[`, `{"format":1,"name":"` + o.Name + `","dir":"/etc"}`, `{"format":99}`} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(precious), "lab.json"), []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := lab.Down(t.Context(), o.Labs, []string{o.Name}, true); diag.ExitCode(err) != diag.ExitRefused {
			t.Errorf("down of %s: %v", state, err)
		}
	}
	if gone(precious) {
		t.Fatal("a foreign file was removed")
	}
	if err := os.Chmod(o.Labs, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, _, err := lab.Up(t.Context(), o); diag.ExitCode(err) != diag.ExitRefused {
		t.Errorf("up in a folder that is anybody's: %v", err)
	}
}

func TestMountsAreLeftAlone(t *testing.T) {
	short(t)
	o := labtest.Options(t, light())
	l, hold, err := lab.Up(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	source := t.TempDir()
	if err := os.WriteFile(filepath.Join(source, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(source, l.PoolDir(), "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	_, err = lab.Down(t.Context(), o.Labs, []string{l.Name}, false)
	if diag.ExitCode(err) != diag.ExitRefused {
		t.Errorf("down with a mount: %v", err)
	}
	if err := unix.Unmount(l.PoolDir(), 0); err != nil {
		t.Fatal(err)
	}
	if gone(filepath.Join(source, "precious")) {
		t.Fatal("a foreign file was removed")
	}
	if removed, err := lab.Down(t.Context(), o.Labs, []string{l.Name}, false); err != nil || len(removed) != 1 {
		t.Errorf("%v, %v", removed, err)
	}
}
