package rehearsal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/image"
	"github.com/braggdev/bragg/internal/lab"
	"github.com/braggdev/bragg/internal/lab/chassis"
	"github.com/braggdev/bragg/internal/lab/labtest"
	"github.com/braggdev/bragg/internal/testreq"
)

func TestMain(m *testing.M) {
	labtest.Main()
	os.Exit(m.Run())
}

// hangGuard ends what should have ended long before.
const hangGuard = 90 * time.Minute

// rig is a lab with guests, and the programs that users have.
type rig struct {
	*lab.Lab
	bragg string // path of the program; the agent lies beside it
}

// newRig makes a lab of two hosts, each for libvirt and for ssh, and a template that boots in seconds. Scenarios of
// X-Ray call it ubuntu1604.
func newRig(t *testing.T) *rig {
	t.Helper()
	testreq.Root(t)
	kernel := testreq.KernelPackage(t)
	dir := programs(t)
	template := filepath.Join(dir, "image")
	if err := os.Mkdir(template, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := image.Build(image.Source{Package: kernel, Agent: filepath.Join(dir, "bragg-agent")}, template); err != nil {
		t.Fatal(err)
	}
	return newRigOf(t, dir, map[string]string{"ubuntu1604": template})
}

// newRigOf makes a lab with these templates, for the programs in a folder.
func newRigOf(t *testing.T, dir string, templates map[string]string) *rig {
	t.Helper()
	return &rig{Lab: labtest.New(t, lab.Options{SSH: true, Templates: templates}), bragg: filepath.Join(dir, "bragg")}
}

// programs builds bragg and its agent in a folder.
func programs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := testreq.Build(dir, "github.com/braggdev/bragg/cmd/bragg", "github.com/braggdev/bragg/cmd/bragg-agent"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// command carries out bragg with these arguments. stderr is for people.
func (r *rig) command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, r.bragg, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(filepath.Dir(r.bragg), "state"))
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("bragg %s: %v", strings.Join(args, " "), err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// must wants exit code 0.
func (r *rig) must(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := r.command(t, args...)
	if code != 0 {
		t.Fatalf("bragg %s: exit code %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// overSSH is libvirt on hosts that are reachable by ssh only.
const overSSH = "libvirt over ssh"

// target writes the lab's target file of a provider, with the emulation of QEMU so that results do not depend on what
// the machine's processor can do.
func (r *rig) target(t *testing.T, provider string) string {
	t.Helper()
	connect := map[string]string{"libvirt": lab.ConnectSocket, overSSH: lab.ConnectSSH}[provider]
	for _, f := range r.TargetFiles() {
		if f.Provider != strings.TrimSuffix(provider, " over ssh") || f.Connect != connect {
			continue
		}
		text := f.Text
		if f.Provider == "libvirt" {
			text = strings.Replace(text, "options:\n", "options:\n  accelerator: tcg\n", 1)
		}
		path := filepath.Join(t.TempDir(), "target.yml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Fatalf("the lab has no target file for %q", provider)
	return ""
}

// leftovers wants nothing of a run on the hosts: no domain, volume, guest, agent or file, and both hosts up.
func (r *rig) leftovers(t *testing.T, runs string) {
	t.Helper()
	states, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		if s.Power != chassis.PowerOn {
			t.Errorf("host %s is %s", s.Name, s.Power)
		}
	}
	for _, h := range r.Hosts {
		if left := r.virsh(t, h, "list", "--all", "--name"); left != "" {
			t.Errorf("domains left on %s: %s", h.Name, left)
		}
		if left := r.onHost(t, h, "find", "/var/tmp/bragg", "-mindepth", "1"); left != "" {
			t.Errorf("files left on %s:\n%s", h.Name, left)
		}
	}
	volumes, err := filepath.Glob(filepath.Join(r.PoolDir(), "*"))
	volumes = slices.DeleteFunc(volumes, func(path string) bool {
		return slices.ContainsFunc(r.Templates, func(t lab.Template) bool { return t.Image == filepath.Base(path) })
	})
	if err != nil || len(volumes) > 0 {
		t.Errorf("volumes left: %q, %v", volumes, err)
	}
	for _, process := range testreq.ProcessesNaming(t, r.Dir) {
		if strings.Contains(process, "qemu-system") || strings.Contains(process, runs) || strings.Contains(process, r.KnownHostsFile()) {
			t.Errorf("process left: %s", process)
		}
	}
	if said := r.must(t, "clean", "--runs", runs); !strings.Contains(said, "Nothing to clean") {
		t.Errorf("bragg clean found something: %s", said)
	}
}

func (r *rig) virsh(t *testing.T, h lab.Host, args ...string) string {
	t.Helper()
	out, err := exec.Command("virsh", append([]string{"-q", "-c", h.URI()}, args...)...).Output()
	if err != nil {
		t.Errorf("virsh on %s: %v", h.Name, err)
	}
	return strings.TrimSpace(string(out))
}

// onHost runs a program on a host. A folder that find does not find is as good as an empty one.
func (r *rig) onHost(t *testing.T, h lab.Host, program ...string) string {
	t.Helper()
	var args []string
	for _, o := range r.SSHOptions() {
		args = append(args, "-o", o)
	}
	args = slices.Concat(args, []string{"--", fmt.Sprintf("%s@%s", lab.SSHUser, h.Address)}, program)
	out, err := exec.Command("ssh", args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if strings.Contains(text, "No such file or directory") {
		return ""
	}
	if err != nil {
		t.Errorf("ssh to %s: %v: %s", h.Name, err, text)
	}
	return text
}
