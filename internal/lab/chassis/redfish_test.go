package chassis

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fakeChassis is a host that switches at once.
type fakeChassis struct {
	mu    sync.Mutex
	power Power
	asked []Reset
}

func (c *fakeChassis) Power() Power {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.power
}

func (c *fakeChassis) Reset(_ context.Context, kind Reset) error {
	if err := CheckReset(kind); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, kind)
	c.power = PowerOn
	if kind == ResetForceOff {
		c.power = PowerOff
	}
	return nil
}

func TestRedfish(t *testing.T) {
	t.Parallel()
	box := &fakeChassis{power: PowerOn}
	service := Redfish(Machine{Name: "host-1", UUID: "4c4c4544-0031-4e10-8051-b4c04f4e3232", Serial: "S1"}, "right", box)
	for _, c := range []struct {
		method, path, user, password, body string
		code                               int
		want                               string
	}{
		{"GET", "/redfish", "", "", "", 200, `"/redfish/v1/"`},
		{"GET", "/redfish/v1/", "", "", "", 200, `"/redfish/v1/Systems"`},
		{"GET", "/redfish/v1", "", "", "", 200, `"RedfishVersion"`},
		{"GET", "/redfish/v1/Systems", "", "", "", 401, ""},
		{"GET", "/redfish/v1/Systems/1", "bragg", "wrong", "", 401, ""},
		{"GET", "/redfish/v1/Systems/1", "root", "right", "", 401, ""},
		{"GET", "/redfish/v1/Systems/1", "bragg", "", "", 401, ""},
		{"GET", "/redfish/v1/Systems/", "bragg", "right", "", 200, `"Members@odata.count":1`},
		{"GET", "/redfish/v1/Systems/1", "bragg", "right", "", 200, `"PowerState":"On"`},
		{"GET", "/redfish/v1/Systems/1", "bragg", "right", "", 200, `"UUID":"4c4c4544-0031-4e10-8051-b4c04f4e3232"`},
		{"GET", "/redfish/v1/Systems/2", "bragg", "right", "", 404, ""},
		{"GET", "/redfish/v1/Chassis/1", "bragg", "right", "", 200, `"SerialNumber":"S1"`},
		{"GET", "/redfish/v1/Managers/1", "bragg", "right", "", 200, `"ManagerType":"BMC"`},
		{"GET", resetPath, "bragg", "right", "", 404, ""},
		{"POST", resetPath, "bragg", "wrong", `{"ResetType":"ForceOff"}`, 401, ""},
		{"POST", resetPath, "bragg", "right", `{"ResetType":"Explode"}`, 400, "ActionParameterValueNotInList"},
		{"POST", resetPath, "bragg", "right", `{}`, 400, "ActionParameterValueNotInList"},
		{"POST", resetPath, "bragg", "right", `[`, 400, "MalformedJSON"},
		{"POST", resetPath, "bragg", "right", `{"x":"` + strings.Repeat("x", redfishBodyMax) + `"}`, 400, "MalformedJSON"},
		{"POST", resetPath, "bragg", "right", `{"ResetType":"ForceOff"}`, 204, ""},
		{"GET", "/redfish/v1/Systems/1", "bragg", "right", "", 200, `"PowerState":"Off"`},
		{"POST", resetPath, "bragg", "right", `{"ResetType":"On"}`, 204, ""},
		{"DELETE", "/redfish/v1/Systems/1", "bragg", "right", "", 404, ""},
	} {
		request := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		if c.user != "" {
			request.SetBasicAuth(c.user, c.password)
		}
		answer := httptest.NewRecorder()
		service.ServeHTTP(answer, request)
		if answer.Code != c.code || !strings.Contains(answer.Body.String(), c.want) {
			t.Errorf("%s %s as %q: %d %s, want %d %s", c.method, c.path, c.user, answer.Code, answer.Body, c.code, c.want)
		}
	}
	if fmt.Sprint(box.asked) != "[ForceOff On]" {
		t.Errorf("asked for %v", box.asked)
	}
}

func TestRedfishSessions(t *testing.T) {
	t.Parallel()
	service := Redfish(Machine{}, "right", &fakeChassis{power: PowerOn})
	ask := func(method, path, token, body string) *httptest.ResponseRecorder {
		request := httptest.NewRequest(method, path, strings.NewReader(body))
		request.Header.Set("X-Auth-Token", token)
		answer := httptest.NewRecorder()
		service.ServeHTTP(answer, request)
		return answer
	}
	if a := ask(http.MethodPost, sessionsPath, "", `{"UserName":"bragg","Password":"wrong"}`); a.Code != http.StatusUnauthorized {
		t.Errorf("wrong password: %d", a.Code)
	}
	opened := ask(http.MethodPost, sessionsPath, "", `{"UserName":"bragg","Password":"right"}`)
	token, place := opened.Header().Get("X-Auth-Token"), opened.Header().Get("Location")
	if opened.Code != http.StatusCreated || token == "" || place == "" || !json.Valid(opened.Body.Bytes()) {
		t.Fatalf("%d %v", opened.Code, opened.Header())
	}
	if a := ask(http.MethodGet, systemPath, token, ""); a.Code != http.StatusOK {
		t.Errorf("with a token: %d", a.Code)
	}
	if a := ask(http.MethodGet, systemPath, token+"x", ""); a.Code != http.StatusUnauthorized {
		t.Errorf("with another token: %d", a.Code)
	}
	if a := ask(http.MethodDelete, place, token, ""); a.Code != http.StatusNoContent {
		t.Errorf("end the session: %d", a.Code)
	}
	if a := ask(http.MethodGet, systemPath, token, ""); a.Code != http.StatusUnauthorized {
		t.Errorf("with a token that has ended: %d", a.Code)
	}
	for range redfishSessionsMax {
		ask(http.MethodPost, sessionsPath, "", `{"UserName":"bragg","Password":"right"}`)
	}
	if a := ask(http.MethodPost, sessionsPath, "", `{"UserName":"bragg","Password":"right"}`); a.Code != http.StatusServiceUnavailable {
		t.Errorf("too many sessions: %d", a.Code)
	}
}
