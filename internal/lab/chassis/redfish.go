package chassis

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
)

// redfish is the Redfish service of one host (DMTF DSP0266): a system, its chassis and its manager, basic authentication
// and sessions. It has what switching needs and what programs look for on the way there.
type redfish struct {
	host     Machine
	password string
	chassis  Chassis

	mu       sync.Mutex
	sessions map[string]string // token → id
}

const (
	redfishVersion     = "1.15.0"
	redfishBodyMax     = 64 << 10
	redfishSessionsMax = 64
	systemPath         = "/redfish/v1/Systems/1"
	resetPath          = systemPath + "/Actions/ComputerSystem.Reset"
	sessionsPath       = "/redfish/v1/SessionService/Sessions"
)

type object map[string]any

func link(path string) object { return object{"@odata.id": path} }

func links(paths ...string) []object {
	out := []object{}
	for _, p := range paths {
		out = append(out, link(p))
	}
	return out
}

func Redfish(h Machine, password string, c Chassis) http.Handler {
	r := &redfish{host: h, password: password, chassis: c, sessions: map[string]string{}}
	open := http.NewServeMux() // without authentication, as the standard has it
	open.HandleFunc("GET /redfish", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, object{"v1": "/redfish/v1/"})
	})
	open.HandleFunc("GET /redfish/v1", r.root)
	open.HandleFunc("GET /redfish/v1/{$}", r.root)
	open.HandleFunc("POST "+sessionsPath, r.login)
	closed := http.NewServeMux()
	closed.HandleFunc("GET /redfish/v1/Systems", r.collection("ComputerSystemCollection.ComputerSystemCollection", systemPath))
	closed.HandleFunc("GET /redfish/v1/Chassis", r.collection("ChassisCollection.ChassisCollection", "/redfish/v1/Chassis/1"))
	closed.HandleFunc("GET /redfish/v1/Managers", r.collection("ManagerCollection.ManagerCollection", "/redfish/v1/Managers/1"))
	closed.HandleFunc("GET "+systemPath, r.system)
	closed.HandleFunc("GET /redfish/v1/Chassis/1", r.box)
	closed.HandleFunc("GET /redfish/v1/Managers/1", r.manager)
	closed.HandleFunc("POST "+resetPath, r.reset)
	closed.HandleFunc("DELETE "+sessionsPath+"/{id}", r.logout)
	closed.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, "ResourceMissingAtURI", "no such resource")
	})
	open.Handle("/", r.guard(closed))
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("OData-Version", "4.0")
		w.Header().Set("Cache-Control", "no-store")
		if q.URL.Path != "/redfish/v1/" { // elsewhere a trailing slash is ignored
			q.URL.Path = strings.TrimSuffix(q.URL.Path, "/")
		}
		q.Body = http.MaxBytesReader(w, q.Body, redfishBodyMax)
		open.ServeHTTP(w, q)
	})
}

// guard lets in who knows the password, or has a token of a session.
func (r *redfish) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		user, password, ok := q.BasicAuth()
		known := ok && r.knows(user, password)
		if token := q.Header.Get("X-Auth-Token"); token != "" {
			r.mu.Lock()
			_, known = r.sessions[token]
			r.mu.Unlock()
		}
		if !known {
			w.Header().Set("WWW-Authenticate", `Basic realm="bragg-lab"`)
			fail(w, http.StatusUnauthorized, "InsufficientPrivilege", "user or password is wrong")
			return
		}
		next.ServeHTTP(w, q)
	})
}

func (r *redfish) knows(user, password string) bool {
	rightUser := subtle.ConstantTimeCompare([]byte(user), []byte(User))
	return rightUser&subtle.ConstantTimeCompare([]byte(password), []byte(r.password)) == 1
}

func (r *redfish) root(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, object{
		"@odata.id": "/redfish/v1/", "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot", "Id": "RootService",
		"Name": "Bragg lab, simulated BMC of " + r.host.Name, "RedfishVersion": redfishVersion, "UUID": r.host.UUID,
		"Systems": link("/redfish/v1/Systems"), "Chassis": link("/redfish/v1/Chassis"), "Managers": link("/redfish/v1/Managers"),
		"SessionService": link("/redfish/v1/SessionService"), "Links": object{"Sessions": link(sessionsPath)},
	})
}

func (r *redfish) collection(kind string, members ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		answer(w, http.StatusOK, object{
			"@odata.id": q.URL.Path, "@odata.type": "#" + kind, "Name": kind, "Members": links(members...),
			"Members@odata.count": len(members),
		})
	}
}

func (r *redfish) system(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, object{
		"@odata.id": systemPath, "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem", "Id": "1", "Name": r.host.Name,
		"HostName": r.host.Name, "SystemType": "Physical", "Manufacturer": "Bragg", "Model": "lab host (simulated)",
		"UUID": r.host.UUID, "SerialNumber": r.host.Serial, "PowerState": r.chassis.Power(),
		"Status": object{"State": "Enabled", "Health": "OK"},
		"Links":  object{"Chassis": links("/redfish/v1/Chassis/1"), "ManagedBy": links("/redfish/v1/Managers/1")},
		"Actions": object{"#ComputerSystem.Reset": object{
			"target": resetPath, "ResetType@Redfish.AllowableValues": resets,
		}},
	})
}

func (r *redfish) box(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, object{
		"@odata.id": "/redfish/v1/Chassis/1", "@odata.type": "#Chassis.v1_23_0.Chassis", "Id": "1", "Name": r.host.Name,
		"ChassisType": "RackMount", "SerialNumber": r.host.Serial, "PowerState": r.chassis.Power(),
		"Links": object{"ComputerSystems": links(systemPath), "ManagedBy": links("/redfish/v1/Managers/1")},
	})
}

func (r *redfish) manager(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, object{
		"@odata.id": "/redfish/v1/Managers/1", "@odata.type": "#Manager.v1_18_0.Manager", "Id": "1", "Name": "BMC of " + r.host.Name,
		"ManagerType": "BMC", "Links": object{"ManagerForServers": links(systemPath)},
	})
}

func (r *redfish) reset(w http.ResponseWriter, q *http.Request) {
	var order struct{ ResetType Reset }
	if err := json.NewDecoder(q.Body).Decode(&order); err != nil {
		fail(w, http.StatusBadRequest, "MalformedJSON", "the body is not a JSON object with a ResetType")
		return
	}
	switch err := r.chassis.Reset(q.Context(), order.ResetType); {
	case errors.Is(err, errReset):
		fail(w, http.StatusBadRequest, "ActionParameterValueNotInList", "ResetType is none of the allowable values")
	case err != nil:
		fail(w, http.StatusInternalServerError, "InternalError", err.Error())
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (r *redfish) login(w http.ResponseWriter, q *http.Request) {
	var who struct{ UserName, Password string }
	if err := json.NewDecoder(q.Body).Decode(&who); err != nil {
		fail(w, http.StatusBadRequest, "MalformedJSON", "the body is not a JSON object with UserName and Password")
		return
	}
	if !r.knows(who.UserName, who.Password) {
		fail(w, http.StatusUnauthorized, "InsufficientPrivilege", "user or password is wrong")
		return
	}
	token, id := rand.Text(), rand.Text()
	r.mu.Lock()
	full := len(r.sessions) >= redfishSessionsMax
	if !full {
		r.sessions[token] = id
	}
	r.mu.Unlock()
	if full {
		fail(w, http.StatusServiceUnavailable, "SessionLimitExceeded", "too many sessions are open")
		return
	}
	w.Header().Set("X-Auth-Token", token)
	w.Header().Set("Location", sessionsPath+"/"+id)
	answer(w, http.StatusCreated, object{
		"@odata.id": sessionsPath + "/" + id, "@odata.type": "#Session.v1_6_0.Session", "Id": id, "Name": "session", "UserName": User,
	})
}

func (r *redfish) logout(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for token, id := range r.sessions {
		if id == q.PathValue("id") {
			delete(r.sessions, token)
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	fail(w, http.StatusNotFound, "ResourceMissingAtURI", "no such session")
}

func answer(w http.ResponseWriter, code int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client is gone when it fails
}

func fail(w http.ResponseWriter, code int, id, text string) {
	answer(w, code, object{"error": object{
		"code": "Base.1.18." + id, "message": text,
		"@Message.ExtendedInfo": []object{{"MessageId": "Base.1.18." + id, "Message": text}},
	}})
}
