package targettest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/braggdev/bragg/internal/target"
)

// BMC is the simulated BMC of a node: a Redfish service without TLS with one system, with the features that a Switch needs.
type BMC struct {
	Config *target.BMC // as in a target file, with CredentialName
	UUID   string      // of the machine

	mu       sync.Mutex
	off      bool
	deaf     bool
	resets   []string
	readings int
	switched func(on bool)
}

// CredentialName is the name in Config of the credential that Credentials returns.
const CredentialName = "bmc"

// NewBMC starts a BMC whose machine is on and has this UUID. switched is called whenever the power changes; it may be nil.
func NewBMC(t testing.TB, uuid string, switched func(on bool)) *BMC {
	t.Helper()
	b := &BMC{UUID: uuid, switched: switched}
	const system = "/redfish/v1/Systems/1"
	type object = map[string]any
	mux := http.NewServeMux()
	answer := func(path string, body func() object) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(body())
		})
	}
	answer("/redfish/v1/{$}", func() object { return object{"Systems": object{"@odata.id": "/redfish/v1/Systems"}} })
	answer("/redfish/v1/Systems", func() object { return object{"Members": []object{{"@odata.id": system}}} })
	answer(system, func() object {
		b.mu.Lock()
		b.readings++
		uuid := b.UUID
		b.mu.Unlock()
		return object{"Id": "1", "UUID": uuid, "PowerState": b.state(), "Actions": object{"#ComputerSystem.Reset": object{
			"target": system + "/Reset", "ResetType@Redfish.AllowableValues": []string{"On", "ForceOff", "GracefulShutdown"},
		}}}
	})
	mux.HandleFunc("POST "+system+"/Reset", func(w http.ResponseWriter, r *http.Request) {
		var order struct{ ResetType string }
		if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		b.reset(order.ResetType)
		w.WriteHeader(http.StatusNoContent)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	b.Config = &target.BMC{
		Protocol: target.Redfish, Address: strings.TrimPrefix(server.URL, "http://"), TLS: target.TLSNone, Credential: CredentialName,
	}
	return b
}

// Credentials are the credentials for a target file with such BMCs.
func Credentials(t testing.TB) map[string]target.Credential {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]target.Credential{CredentialName: {User: "bragg", Secret: target.Secret{File: path}}}
}

func (b *BMC) state() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.off {
		return "Off"
	}
	return "On"
}

// SetOff switches the machine by its own button.
func (b *BMC) SetOff(off bool) {
	b.mu.Lock()
	changed := b.off != off
	b.off = off
	b.mu.Unlock()
	if changed && b.switched != nil {
		b.switched(!off)
	}
}

// SetDeaf makes it accept orders without executing them.
func (b *BMC) SetDeaf(deaf bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaf = deaf
}

// SetUUID puts the BMC of another machine at its address.
func (b *BMC) SetUUID(uuid string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.UUID = uuid
}

// Readings is how often the state was queried.
func (b *BMC) Readings() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.readings
}

// Resets are the received orders.
func (b *BMC) Resets() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.resets...)
}

func (b *BMC) reset(kind string) {
	b.mu.Lock()
	b.resets = append(b.resets, kind)
	deaf := b.deaf
	b.mu.Unlock()
	if !deaf {
		b.SetOff(kind != "On")
	}
}
