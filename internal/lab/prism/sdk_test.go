package prism_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/lab/prism"
	"github.com/braggdev/bragg/internal/lab/prism/faults"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/testreq"
)

// differentCallsMin is how many different calls of the SDKs the script must make.
const differentCallsMin = 40

// TestOfficialClients: Nutanix's own SDKs work with the emulator as they are, and read what it means.
func TestOfficialClients(t *testing.T) {
	if testing.Short() {
		t.Skip("needs Python and half a minute of a busy machine")
	}
	python := testreq.NutanixPython(t)
	r := newRig(t, prism.Options{})
	if _, err := r.AddImage("debian", strings.NewReader("bytes")); err != nil {
		t.Fatal(err)
	}
	r.Faults.Add(faults.Rule{Task: "EnterHostMaintenance", Times: 1, After: time.Hour}) // the script cancels it
	var subnet string
	r.State.Read(func(d *state.Data) { subnet = d.Subnets[0].ID })
	_, port, err := net.SplitHostPort(r.Address)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.Open(filepath.Join("testdata", "sdk.py")) // by this process, so that a changed script is a changed test
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	cmd := exec.CommandContext(t.Context(), python, "-")
	cmd.Stdin = script
	cmd.Env = append(os.Environ(), "PRISM_PORT="+port, "PRISM_USER="+r.Credentials.User, "PRISM_PASSWORD="+r.Credentials.Password, "PRISM_SUBNET="+subnet)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var calls, different int
	if _, err := fmt.Sscan(lines[len(lines)-1], &calls, &different); err != nil || different < differentCallsMin {
		t.Errorf("%d different calls, want %d: %s", different, differentCallsMin, out)
	}
	t.Logf("%d calls, %d different", calls, different)
}
