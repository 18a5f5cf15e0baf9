package bmc

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/target"
)

const (
	testUser     = "ADMIN"
	testPassword = "hunter2-hunter2" // with IPMI at most 20 bytes
)

// service is a Redfish service with the resources of DMTF's schemas (ServiceRoot, ComputerSystemCollection,
// ComputerSystem 1.20, ActionInfo 1.4) that have to do with power, and faults.
type service struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	systems  []string // ids
	uuid     string
	on       bool
	deaf     bool
	delay    time.Duration // of the effect
	allowed  []string      // nil: not said
	byInfo   bool          // allowed values are in an ActionInfo
	noReset  bool
	state    string            // instead of what is true
	override map[string]string // path → body that is sent instead
	redirect map[string]string // path → Location
	status   int               // of resets, instead of 204
	hang     chan struct{}     // when not nil, requests wait for its end
	resets   []string
	strays   []string // requests that should not have come
}

func newService(t *testing.T) *service {
	s := &service{t: t, uuid: uuidDMI, systems: []string{"437XR1138R2"}, on: true, allowed: []string{"On", "ForceOff", "GracefulShutdown"},
		override: map[string]string{}, redirect: map[string]string{}}
	s.Server = quietTLS(s.serve)
	t.Cleanup(s.Close)
	return s
}

// quietTLS serves TLS and does not log what clients refuse.
func quietTLS(serve http.HandlerFunc) *httptest.Server {
	server := httptest.NewUnstartedServer(serve)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	return server
}

// fingerprint of the certificate that the service shows.
func (s *service) fingerprint() string {
	sum := sha256.Sum256(s.Certificate().Raw)
	return hex.EncodeToString(sum[:])
}

// config is a target file's view of the service.
func (s *service) config() target.Config {
	return target.Config{
		Allow:       target.Allow{NodePower: true},
		Credentials: map[string]target.Credential{"bmc": {User: testUser, Secret: secretFile(s.t, testPassword)}},
		Nodes: []target.NodeConfig{{ID: "left", BMC: &target.BMC{
			Protocol: target.Redfish, Address: strings.TrimPrefix(s.URL, "https://"), Credential: "bmc", Fingerprint: s.fingerprint(),
		}}},
	}
}

func secretFile(t *testing.T, secret string) target.Secret {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return target.Secret{File: path}
}

func (s *service) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if to, ok := s.redirect[r.URL.Path]; ok {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		return
	}
	if body, ok := s.override[r.URL.Path]; ok {
		_, _ = w.Write([]byte(body))
		return
	}
	user, secret, _ := r.BasicAuth()
	if r.URL.Path != "/redfish/v1/" && (user != testUser || secret != testPassword) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.resource(w, r)
}

func (s *service) resource(w http.ResponseWriter, r *http.Request) {
	type o = map[string]any
	reply := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("OData-Version", "4.0")
		_ = json.NewEncoder(w).Encode(v)
	}
	path := strings.TrimPrefix(r.URL.Path, "/redfish/v1/Systems/")
	id, rest, _ := strings.Cut(path, "/")
	switch {
	case r.URL.Path == "/redfish/v1/":
		reply(o{"@odata.id": "/redfish/v1/", "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot", "Id": "RootService", "RedfishVersion": "1.20.0",
			"Systems": o{"@odata.id": "/redfish/v1/Systems"}})
	case r.URL.Path == "/redfish/v1/Systems":
		// One member a page, as services with many do.
		at := 0
		_, _ = fmt.Sscanf(r.URL.Query().Get("$skip"), "%d", &at)
		page := o{"@odata.type": "#ComputerSystemCollection.ComputerSystemCollection", "Members@odata.count": len(s.systems), "Members": []o{}}
		if at < len(s.systems) {
			page["Members"] = []o{{"@odata.id": "/redfish/v1/Systems/" + s.systems[at]}}
		}
		if at+1 < len(s.systems) {
			page["Members@odata.nextLink"] = fmt.Sprintf("/redfish/v1/Systems?$skip=%d", at+1)
		}
		reply(page)
	case path == r.URL.Path:
		s.strays = append(s.strays, r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	case rest == "":
		reply(s.system(id))
	case rest == "ResetActionInfo":
		reply(o{"@odata.type": "#ActionInfo.v1_4_0.ActionInfo", "Parameters": []o{
			{"Name": "Other", "AllowableValues": []string{"x"}}, {"Name": "ResetType", "Required": true, "AllowableValues": s.allowed}}})
	case rest == "Actions/ComputerSystem.Reset" && r.Method == http.MethodPost:
		s.reset(w, r)
	default:
		s.strays = append(s.strays, r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *service) system(id string) map[string]any {
	state := "Off"
	if s.on {
		state = "On"
	}
	if s.state != "" {
		state = s.state
	}
	reset := map[string]any{"target": "/redfish/v1/Systems/" + id + "/Actions/ComputerSystem.Reset"}
	switch {
	case s.byInfo:
		reset["@Redfish.ActionInfo"] = "/redfish/v1/Systems/" + id + "/ResetActionInfo"
	case s.allowed != nil:
		reset["ResetType@Redfish.AllowableValues"] = s.allowed
	}
	out := map[string]any{
		"@odata.id": "/redfish/v1/Systems/" + id, "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem", "Id": id, "Name": "WebFrontEnd483",
		"SystemType": "Physical", "Manufacturer": "Contoso", "SerialNumber": "CN747516XK0Q13", "SKU": "7XK0Q13", "UUID": s.uuid,
		"PowerState": state, "Actions": map[string]any{"#ComputerSystem.Reset": reset},
	}
	if s.noReset {
		delete(out, "Actions")
	}
	return out
}

func (s *service) reset(w http.ResponseWriter, r *http.Request) {
	var body struct{ ResetType string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Content-Type") != "application/json" {
		s.strays = append(s.strays, fmt.Sprintf("a reset with %q: %v", r.Header.Get("Content-Type"), err))
	}
	s.resets = append(s.resets, body.ResetType)
	if s.status != 0 {
		w.WriteHeader(s.status)
		_, _ = w.Write([]byte(`{"error": {"code": "Base.1.18.GeneralError", "message": "See ExtendedInfo", "@Message.ExtendedInfo":
			[{"MessageId": "Base.1.18.ResourceInStandby", "Message": "The request could not be performed because the resource is in standby."}]}}`))
		return
	}
	set := func(on bool) {
		if s.deaf {
			return
		}
		if s.delay > 0 {
			time.AfterFunc(s.delay, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.on = on
			})
			return
		}
		s.on = on
	}
	switch body.ResetType {
	case "On", "ForceOn":
		set(true)
	case "ForceOff", "GracefulShutdown":
		set(false)
	default:
		s.strays = append(s.strays, "reset type "+body.ResetType)
	}
	w.WriteHeader(http.StatusNoContent)
}
