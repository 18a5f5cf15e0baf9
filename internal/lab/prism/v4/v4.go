// Package v4 is version 4 of Prism's API over the state of one cluster: the namespaces clustermgmt, vmm, prism, dataprotection,
// networking and monitoring, as the official SDKs call them.
//
//	request ──▶ route: version, ids ──▶ state ──▶ objects with $objectType, ETag, metadata of pages
//	                                      └─▶ 202 with the reference of a task
package v4

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/lab/prism/rest"
	"github.com/braggdev/bragg/internal/lab/prism/state"
	"github.com/braggdev/bragg/internal/lab/prism/stats"
)

// Options configures an API.
type Options struct {
	// Version is the newest that the server knows, "v4.3" if empty: requests for a newer one get 404, clients negotiate before.
	Version string
	Stats   stats.Source
}

// API answers requests below /api/{namespace}/v4.x. It must not be copied.
type API struct {
	prism   *state.Prism
	stats   stats.Source
	version string
	minor   int
	mux     *http.ServeMux
}

// New returns the API of a cluster.
func New(p *state.Prism, o Options) *API {
	a := &API{prism: p, stats: o.Stats, version: o.Version, mux: http.NewServeMux()}
	if a.version == "" {
		a.version = "v4.3"
	}
	a.minor, _ = strconv.Atoi(strings.TrimPrefix(a.version, "v4."))
	for _, namespace := range []string{"vmm", "clustermgmt", "prism", "dataprotection", "networking", "monitoring"} {
		for _, method := range []string{"OPTIONS", "GET"} {
			a.mux.HandleFunc(method+" /api/"+namespace+"/unversioned/info", func(w http.ResponseWriter, _ *http.Request) {
				rest.Answer(w, http.StatusOK, rest.Object{"data": a.version})
			})
		}
	}
	a.clusterRoutes()
	a.containerRoutes()
	a.vmRoutes()
	a.deviceRoutes()
	a.imageRoutes()
	a.pointRoutes()
	a.policyRoutes()
	a.taskRoutes()
	a.statRoutes()
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { Fail(w, r, http.StatusNotFound, "no such resource") })
	return a
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// handler answers one request; its error is written in the shape of v4.
type handler func(w http.ResponseWriter, r *http.Request) error

// route serves "METHOD namespace/path", such as "GET vmm/ahv/config/vms/{id}".
func (a *API) route(pattern string, h handler) {
	method, path, _ := strings.Cut(pattern, " ")
	namespace, path, _ := strings.Cut(path, "/")
	a.mux.HandleFunc(method+" /api/"+namespace+"/{version}/"+path, func(w http.ResponseWriter, r *http.Request) {
		minor, err := strconv.Atoi(strings.TrimPrefix(r.PathValue("version"), "v4."))
		if err != nil || minor < 0 || minor > a.minor {
			Fail(w, r, http.StatusNotFound, "version "+r.PathValue("version")+" is not available")
			return
		}
		if err := h(w, r); err != nil {
			failWith(w, r, err)
		}
	})
}

func failWith(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusBadRequest
	if refusal, ok := state.IsRefusal(err); ok {
		status = map[state.Kind]int{
			state.NotFound: http.StatusNotFound, state.Invalid: http.StatusBadRequest, state.Busy: http.StatusConflict,
			state.Stale: http.StatusPreconditionFailed,
		}[refusal.Kind]
	}
	Fail(w, r, status, err.Error())
}

// groups are the error groups by status.
var groups = map[int]string{
	http.StatusBadRequest: "INVALID_INPUT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusNotFound: "ENTITY_NOT_FOUND",
	http.StatusConflict: "CONFLICT", http.StatusPreconditionFailed: "ETAG_MISMATCH", http.StatusPreconditionRequired: "ETAG_REQUIRED",
	http.StatusTooManyRequests: "RATE_LIMIT_EXCEEDED", http.StatusServiceUnavailable: "SERVICE_UNAVAILABLE",
}

// Fail writes an error in the shape of v4.
func Fail(w http.ResponseWriter, r *http.Request, status int, message string) {
	namespace, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
	group := groups[status]
	if group == "" {
		group = "INTERNAL_ERROR"
	}
	rest.Answer(w, status, rest.Object{
		"$objectType": namespace + ".v4.error.ErrorApiResponse",
		"data": object(namespace+".v4.error.ErrorResponse", rest.Object{
			"error": []rest.Object{appMessage(namespace, status, group, message)},
		}),
		"metadata": metadata(true, false, 0, r),
	})
}

func appMessage(namespace string, status int, group, message string) rest.Object {
	return object(namespace+".v4.error.AppMessage", rest.Object{
		"message": message, "severity": "ERROR", "code": fmt.Sprintf("%s-%d", strings.ToUpper(namespace), 10000+status), "locale": "en_US",
		"errorGroup": group,
	})
}

// object marks an object with its type, by which clients decode it.
func object(kind string, o rest.Object) rest.Object {
	o["$objectType"] = kind
	o["$reserved"] = rest.Object{"$fv": "v4.r3"}
	return o
}

func metadata(failed, pages bool, total int, r *http.Request) rest.Object {
	flag := func(name string, value bool) rest.Object {
		return object("common.v1.config.Flag", rest.Object{"name": name, "value": value})
	}
	m := object("common.v1.response.ApiResponseMetadata", rest.Object{
		"flags": []rest.Object{flag("hasError", failed), flag("isPaginated", pages), flag("isTruncated", false)},
		"links": []rest.Object{object("common.v1.response.ApiLink", rest.Object{"href": "https://" + r.Host + r.URL.RequestURI(), "rel": "self"})},
	})
	if pages {
		m["totalAvailableResults"] = total
	}
	return m
}

// list answers a page of all entities. An empty page has no data, as in Prism.
func list(w http.ResponseWriter, r *http.Request, kind string, all []rest.Object) error {
	p, err := rest.ReadPage(r.URL.Query())
	if err != nil {
		return state.Invalidf("%v", err)
	}
	page, total := p.Apply(all)
	body := rest.Object{"$objectType": kind, "metadata": metadata(false, true, total, r)}
	if len(page) > 0 {
		body["data"] = page
	}
	rest.Answer(w, http.StatusOK, body)
	return nil
}

// one answers an entity with its ETag.
func one(w http.ResponseWriter, r *http.Request, kind string, o rest.Object, version int) error {
	if id, ok := o["extId"].(string); ok {
		w.Header().Set("ETag", etag(id, version))
	}
	rest.Answer(w, http.StatusOK, rest.Object{"$objectType": kind, "data": o, "metadata": metadata(false, false, 0, r)})
	return nil
}

func etag(id string, version int) string {
	return fmt.Sprintf("YXBwbGljYXRpb24vanNvbg==:%s:%d", id[:min(8, len(id))], version)
}

// match is the version that If-Match names, -1 for any. required: Prism refuses the request without it.
func match(r *http.Request, id string, required bool) (int, error) {
	text := strings.Trim(r.Header.Get("If-Match"), `"`)
	switch {
	case text == "" && required:
		return 0, errEtagRequired
	case text == "" || text == "*":
		return -1, nil
	}
	var version int
	at := strings.LastIndexByte(text, ':')
	version, err := strconv.Atoi(text[at+1:])
	if err != nil || version < 0 || text != etag(id, version) {
		return 0, &state.Refusal{Kind: state.Stale, Message: "If-Match is not an ETag of this entity"}
	}
	return version, nil
}

var errEtagRequired = state.Invalidf("If-Match is required: read the entity before and send its ETag")

// accepted answers with the reference of a task.
func accepted(w http.ResponseWriter, r *http.Request, task string, err error) error {
	if err != nil {
		return err
	}
	rest.Answer(w, http.StatusAccepted, rest.Object{
		"$objectType": "prism.v4.config.TaskApiResponse",
		"data":        object("prism.v4.config.TaskReference", rest.Object{"extId": taskPrefix + task}), "metadata": metadata(false, false, 0, r),
	})
	return nil
}

func decode(r *http.Request, into any) error {
	if err := rest.Decode(r, into); err != nil {
		return state.Invalidf("the body is not valid: %v", err)
	}
	return nil
}

// stamp is a time as v4 writes it.
func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// reference is {extId}.
type reference struct {
	ExtID string `json:"extId"`
}

func ref(kind, id string) rest.Object { return object(kind, rest.Object{"extId": id}) }

func refs(kind string, ids []string) []rest.Object {
	var out []rest.Object
	for _, id := range ids {
		out = append(out, ref(kind, id))
	}
	return out
}

func ids(all []reference) []string {
	var out []string
	for _, r := range all {
		out = append(out, r.ExtID)
	}
	return out
}

func ipv4(address string) rest.Object {
	return object("common.v1.config.IPv4Address", rest.Object{"value": address, "prefixLength": 32})
}

func ip(address string) rest.Object {
	return object("common.v1.config.IPAddress", rest.Object{"ipv4": ipv4(address)})
}
