// Package kubetest simulates the API server of a cluster for tests, in memory: objects with versions, lists in pages, watches that
// expire, deletions with preconditions and grace, and what controllers, scheduler and kubelets make of them (nodes.go). Agents in
// pods are real processes, if the test can start them. It is not a cluster: nothing is validated, and there are no namespaces
// besides the one of the test.
package kubetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Object is any object of the API.
type Object = map[string]any

// Server is a simulated API server.
type Server struct {
	*httptest.Server
	Token string // that it accepts
	// Fault is called for every request, before it is served; a code other than 0 is the answer. It may be nil.
	Fault func(r *http.Request) (code int, message string)
	// Denied are the rights that the user lacks, "create pods".
	Denied map[string]bool
	// Run starts the agent of a pod, and returns its address and how to end it. Nil: pods run without agents.
	Run func(pod, secret Object) (address string, stop func(), err error)
	// Fill makes the content of a new claim or snapshot, before the cluster calls it ready. It may be nil.
	Fill func(o Object) error
	// Ahead is how far the clocks of the cluster are ahead.
	Ahead time.Duration
	// Budget forbids evictions while it is above 0, which each refused one lowers.
	Budget int
	// KubeVirt is installed if it is set before the first request.
	KubeVirt *KubeVirt
	// Without are resources that the cluster does not know: "volumesnapshots".
	Without map[string]bool

	mu      sync.Mutex
	version int
	objects map[string]map[string]Object // by resource, by name
	log     []change
	since   int           // versions up to this one are forgotten
	changed chan struct{} // closed with every change
	stops   map[string]func()
	down    map[string]bool // nodes whose kubelet does not answer
	calls   map[string]int
	work    sync.WaitGroup
	front   atomic.Pointer[http.Handler]
}

type change struct {
	version  int
	resource string
	kind     string // ADDED, MODIFIED, DELETED
	object   []byte
	labels   map[string]any
}

const metricsGroup = "metrics.k8s.io"

// Resources of the metrics API: without objects of the first the cluster has none.
const (
	MetricsPods  = metricsGroup + "/pods"
	MetricsNodes = metricsGroup + "/nodes"
)

// Namespace is the only one.
const Namespace = "bench"

// New starts a server with these nodes.
func New(t testing.TB, nodes ...string) *Server {
	t.Helper()
	s := &Server{
		Token: "simulated-token-5d1c8a", objects: map[string]map[string]Object{}, changed: make(chan struct{}), stops: map[string]func(){}, down: map[string]bool{},
		calls: map[string]int{}, Denied: map[string]bool{}, Without: map[string]bool{},
	}
	Front(s, func(server http.Handler) http.Handler { return server })
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*s.front.Load()).ServeHTTP(w, r) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.end)
	for _, name := range []string{"fast", "full"} {
		s.Put("storageclasses", Object{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": Object{"name": name}, "provisioner": "simulated"})
	}
	for i, name := range nodes {
		s.AddNode(name, fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1))
	}
	return s
}

func (s *Server) end() {
	s.CloseClientConnections()
	s.Close()
	s.mu.Lock()
	stops := slices.Collect(maps.Values(s.stops))
	s.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	s.work.Wait()
}

// SetToken makes the server accept another token alone.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Token = token
}

// SetFault replaces Fault.
func (s *Server) SetFault(fault func(r *http.Request) (int, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Fault = fault
}

// Front puts a handler before a server, in place of the one that Front put there earlier.
func Front(s *Server, before func(server http.Handler) http.Handler) {
	h := before(http.HandlerFunc(s.serve))
	s.front.Store(&h)
}

// Calls returns how often each kind of request came: "watch pods", "create pods".
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Forget makes all watches that begin at an earlier version end with 410 Gone, and ends the present ones.
func (s *Server) Forget() {
	s.mu.Lock()
	s.version++
	s.since, s.log = s.version, nil
	s.mu.Unlock()
	s.CloseClientConnections()
}

// OfVMs are the resources that VMs are made of.
var OfVMs = []string{"pods", "persistentvolumeclaims", "secrets", "configmaps", "volumesnapshots", vms, instances, migrations}

// Left lists the objects of OfVMs, "pods/a" and so on.
func Left(s *Server) (all []string) {
	for _, resource := range OfVMs {
		for name := range s.Objects(resource) {
			all = append(all, resource+"/"+name)
		}
	}
	slices.Sort(all)
	return all
}

// Objects returns copies of all objects of a resource, by name.
func (s *Server) Objects(resource string) map[string]Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]Object{}
	for name, o := range s.objects[resource] {
		all[name] = clone(o)
	}
	return all
}

// Put makes or replaces an object, as its owner would.
func (s *Server) Put(resource string, o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(resource, o)
}

// Remove deletes an object at once.
func (s *Server) Remove(resource, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(resource, name)
}

func clone(o Object) Object {
	text, _ := json.Marshal(o)
	var c Object
	_ = json.Unmarshal(text, &c)
	return c
}

func meta(o Object) Object {
	m, _ := o["metadata"].(Object)
	if m == nil {
		m = Object{}
		o["metadata"] = m
	}
	return m
}

func at(o any, path ...string) any {
	for _, key := range path {
		m, _ := o.(Object)
		o = m[key]
	}
	return o
}

func text(o any, path ...string) string {
	v, _ := at(o, path...).(string)
	return v
}

// put notes a change. The caller holds the lock.
func (s *Server) put(resource string, o Object) Object {
	o = clone(o)
	m, name := meta(o), text(o, "metadata", "name")
	kind := "MODIFIED"
	if _, ok := s.objects[resource][name]; !ok {
		kind = "ADDED"
		if s.objects[resource] == nil {
			s.objects[resource] = map[string]Object{}
		}
		s.version++
		m["uid"] = cmp.Or(text(m, "uid"), fmt.Sprintf("uid-%d", s.version))
		m["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	}
	s.note(resource, kind, o)
	s.objects[resource][name] = o
	s.react(resource, clone(o))
	return o
}

func (s *Server) note(resource, kind string, o Object) {
	s.version++
	meta(o)["resourceVersion"] = strconv.Itoa(s.version)
	body, _ := json.Marshal(o)
	labels, _ := meta(o)["labels"].(Object)
	s.log = append(s.log, change{s.version, resource, kind, body, labels})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) remove(resource, name string) {
	o, ok := s.objects[resource][name]
	if !ok {
		return
	}
	delete(s.objects[resource], name)
	s.note(resource, "DELETED", o)
	if resource == "pods" {
		virt{s}.podGone(o)
		s.released()
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	resource, name := "", ""
	switch {
	case len(parts) >= 2 && parts[0] == "api":
		resource, name = located(parts[2:])
	case len(parts) >= 3 && parts[0] == "apis":
		resource, name = located(parts[3:])
		if parts[1] == metricsGroup {
			resource = metricsGroup + "/" + resource // its kinds have the names of others
		}
	}
	verb := map[string]string{"GET": "get", "POST": "create", "PUT": "update", "DELETE": "delete"}[r.Method]
	if verb == "get" && name == "" {
		verb = "list"
		if q.Get("watch") != "" {
			verb = "watch"
		}
	}
	s.mu.Lock()
	w.Header().Set("Date", time.Now().Add(s.Ahead).UTC().Format(http.TimeFormat))
	s.calls[verb+" "+resource]++
	if strings.HasSuffix(r.URL.Path, kubeletPath) {
		s.calls["scrape "+name]++
		verb, resource = "get", "nodes/proxy"
	}
	token, denied, without, fault := s.Token, s.Denied[verb+" "+resource], s.Without[resource], s.Fault
	s.mu.Unlock()
	if fault != nil {
		if code, message := fault(r); code != 0 {
			fail(w, code, map[int]string{429: "TooManyRequests", 503: "ServiceUnavailable", 403: "Forbidden", 500: "InternalError"}[code], message)
			return
		}
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		fail(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
	case r.URL.Path == "/api/v1/namespaces/"+Namespace:
		answer(w, http.StatusOK, Object{"kind": "Namespace", "apiVersion": "v1", "metadata": Object{"name": Namespace}})
	case r.URL.Path == "/version":
		answer(w, http.StatusOK, Object{"gitVersion": "v1.34.0-simulated"})
	case resource == "selfsubjectrulesreviews", resource == "selfsubjectaccessreviews":
		s.review(w, r, resource)
	case resource == metricsGroup+"/" && len(s.Objects(MetricsPods)) > 0:
		answer(w, http.StatusOK, Object{"kind": "APIResourceList"})
	case denied:
		fail(w, http.StatusForbidden, "Forbidden", fmt.Sprintf("%s is forbidden: User \"simulated\" cannot %s resource %q", resource, verb, resource))
	case virt{s}.virtual(w, r, parts):
	case resource == "" || resource == metricsGroup+"/" || without:
		fail(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case strings.HasSuffix(r.URL.Path, "/eviction"):
		s.evict(w, name)
	case strings.HasSuffix(r.URL.Path, kubeletPath):
		kubelet(s, w, name)
	case verb == "watch":
		s.watch(w, r, resource)
	default:
		s.object(w, r, verb, resource, name)
	}
}

// located finds resource and name in the rest of a path.
func located(parts []string) (resource, name string) {
	if len(parts) >= 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) > 0 {
		resource = parts[0]
	}
	if len(parts) > 1 {
		name = parts[1]
	}
	return resource, name
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, code int, reason, message string) {
	if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "0")
	}
	answer(w, code, Object{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code,
	})
}

// review answers what the user may do: everything but what is denied.
func (s *Server) review(w http.ResponseWriter, r *http.Request, resource string) {
	var body Object
	_ = json.NewDecoder(r.Body).Decode(&body)
	if resource == "selfsubjectaccessreviews" {
		a := at(body, "spec", "resourceAttributes")
		name := text(a, "resource")
		if text(a, "group") == metricsGroup {
			name = metricsGroup + "/" + name
		}
		if sub := text(a, "subresource"); sub != "" {
			name += "/" + sub
		}
		body["status"] = Object{"allowed": !s.Denied[text(a, "verb")+" "+name]}
	} else {
		body["status"] = Object{"resourceRules": []any{}, "nonResourceRules": []any{}, "incomplete": true}
	}
	answer(w, http.StatusCreated, body)
}

func (s *Server) object(w http.ResponseWriter, r *http.Request, verb, resource, name string) {
	var body Object
	if r.Body != nil {
		_ = json.NewDecoder(r.Body).Decode(&body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if verb == "create" {
		name = text(body, "metadata", "name")
	}
	existing, found := s.objects[resource][name]
	switch {
	case verb == "list":
		s.list(w, r, resource)
	case verb == "create" && found:
		fail(w, http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s %q already exists", resource, name))
	case verb == "create":
		meta(body)["namespace"] = Namespace
		answer(w, http.StatusCreated, s.put(resource, body))
	case !found:
		fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", resource, name))
	case verb == "get":
		answer(w, http.StatusOK, existing)
	case verb == "update":
		if v := text(body, "metadata", "resourceVersion"); v != "" && v != text(existing, "metadata", "resourceVersion") {
			fail(w, http.StatusConflict, "Conflict", "the object has been modified")
			return
		}
		meta(body)["uid"] = text(existing, "metadata", "uid")
		answer(w, http.StatusOK, s.put(resource, body))
	case verb == "delete":
		if uid := text(body, "preconditions", "uid"); uid != "" && uid != text(existing, "metadata", "uid") {
			fail(w, http.StatusConflict, "Conflict", "the UID in the precondition does not match")
			return
		}
		grace, _ := at(body, "gracePeriodSeconds").(float64)
		s.delete(resource, name, grace > 0)
		answer(w, http.StatusOK, Object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	}
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, resource string) {
	q := r.URL.Query()
	var all []Object
	for _, name := range slices.Sorted(maps.Keys(s.objects[resource])) {
		o := s.objects[resource][name]
		if labels, _ := meta(o)["labels"].(Object); selected(q.Get("labelSelector"), labels) && fields(q.Get("fieldSelector"), o) {
			all = append(all, o)
		}
	}
	first, _ := strconv.Atoi(q.Get("continue"))
	limit, _ := strconv.Atoi(q.Get("limit"))
	next := ""
	all = all[min(first, len(all)):]
	if limit > 0 && len(all) > limit {
		all, next = all[:limit], strconv.Itoa(first+limit)
	}
	if all == nil {
		all = []Object{}
	}
	answer(w, http.StatusOK, Object{
		"kind": "List", "apiVersion": "v1", "metadata": Object{"resourceVersion": strconv.Itoa(s.version), "continue": next}, "items": all,
	})
}

// selected supports what this program uses: labels with values.
func selected(selector string, labels Object) bool {
	for part := range strings.SplitSeq(selector, ",") {
		key, value, ok := strings.Cut(part, "=")
		if ok && text(labels, key) != value {
			return false
		}
	}
	return true
}

func fields(selector string, o Object) bool {
	path, value, ok := strings.Cut(selector, "=")
	return !ok || text(o, strings.Split(path, ".")...) == value
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, resource string) {
	q := r.URL.Query()
	version, _ := strconv.Atoi(q.Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	for {
		s.mu.Lock()
		changed, gone := s.changed, version < s.since
		var news []change
		first, _ := slices.BinarySearchFunc(s.log, version+1, func(c change, v int) int { return cmp.Compare(c.version, v) })
		for _, c := range s.log[first:] {
			if c.resource == resource && selected(q.Get("labelSelector"), c.labels) {
				news = append(news, c)
			}
		}
		if len(s.log) > 0 {
			version = max(version, s.log[len(s.log)-1].version)
		}
		s.mu.Unlock()
		if gone {
			_ = json.NewEncoder(w).Encode(Object{"type": "ERROR", "object": Object{
				"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "message": "too old resource version", "code": http.StatusGone,
			}})
			return
		}
		for _, c := range news {
			if _, err := fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", c.kind, c.object); err != nil {
				return
			}
		}
		_ = flush.Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
