package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/braggdev/bragg/internal/httpbound"
	"github.com/braggdev/bragg/internal/trust"
	"github.com/braggdev/bragg/internal/wait"
)

// Resource is a kind of objects, as the API names it.
type Resource struct {
	schema.GroupVersionResource
	Kind    string
	Cluster bool // its objects are in no namespace
	// Strict: an object with a field that the server does not know is refused, not made without it.
	Strict bool
}

// Resources that targets use.
var (
	Pods           = core("pods", "Pod")
	Claims         = core("persistentvolumeclaims", "PersistentVolumeClaim")
	ConfigMaps     = core("configmaps", "ConfigMap")
	Secrets        = core("secrets", "Secret")
	Events         = core("events", "Event")
	Quotas         = core("resourcequotas", "ResourceQuota")
	Nodes          = Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Kind: "Node", Cluster: true}
	Leases         = extension("coordination.k8s.io", "leases", "Lease")
	StorageClasses = clusterWide(extension("storage.k8s.io", "storageclasses", "StorageClass"))
	Snapshots      = extension("snapshot.storage.k8s.io", "volumesnapshots", "VolumeSnapshot")

	Machines   = strict(extension(kubeVirt, "virtualmachines", "VirtualMachine"))
	Instances  = extension(kubeVirt, "virtualmachineinstances", "VirtualMachineInstance")
	Migrations = strict(extension(kubeVirt, "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration"))
	KubeVirts  = clusterWide(extension(kubeVirt, "kubevirts", "KubeVirt"))
	// DataVolumes fill claims.
	DataVolumes = Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}, Kind: "DataVolume",
	}
)

const kubeVirt = "kubevirt.io"

func extension(group, resource, kind string) Resource {
	return Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, Kind: kind}
}

func clusterWide(r Resource) Resource {
	r.Cluster = true
	return r
}

func strict(r Resource) Resource {
	r.Strict = true
	return r
}

func core(resource, kind string) Resource {
	return Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: resource}, Kind: kind}
}

// APIVersion is as in objects.
func (r Resource) APIVersion() string { return r.GroupVersion().String() }

const (
	callMax   = 60 * time.Second // of one attempt
	pageItems = 500
	pagesMax  = 1000 // of one list
	// answerMax bounds an answer, and listMax all pages of a list.
	answerMax = 64 << 20
	listMax   = 512 << 20
	// A busy server is called again after these pauses, unless it names its own.
	retriesMax   = 6
	retryFirst   = 250 * time.Millisecond
	retryLongest = 8 * time.Second
)

func (c *Client) of(r Resource) dynamic.ResourceInterface {
	if r.Cluster {
		return c.dynamic.Resource(r.GroupVersionResource)
	}
	return c.dynamic.Resource(r.GroupVersionResource).Namespace(c.Namespace)
}

// call makes one call, again while the server is busy or the connection breaks. do must be idempotent.
func (c *Client) call(ctx context.Context, what string, do func(ctx context.Context) error) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	pause := retryFirst
	for attempt := 0; ; attempt++ {
		if ctx.Err() != nil {
			return c.ended(ctx)
		}
		one, done := context.WithTimeout(ctx, callMax)
		err := do(one)
		done()
		switch {
		case err == nil:
			c.reached.Store(true)
			return nil
		case ctx.Err() != nil:
			return c.ended(ctx)
		case attempt == retriesMax || !passing(err) || !c.reached.Load() && misconfigured(err):
			return c.explain(what, err)
		}
		delay := pause
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			delay = max(delay, min(time.Duration(seconds)*time.Second, retryLongest))
		}
		if wait.For(ctx, delay) != nil {
			return c.ended(ctx)
		}
		pause = min(2*pause, retryLongest)
	}
}

// bounded makes a context that ends with the client too.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(ErrClosed) })
	return inner, func() { stop(); cancel(nil) }
}

func (c *Client) ended(ctx context.Context) error {
	if c.Closed() {
		return ErrClosed
	}
	return context.Cause(ctx)
}

// errRefused marks an answer that this program does not take.
var errRefused = errors.New("the answer is refused")

// refused reports whether an answer came that this program does not take, and would not take again.
func refused(err error) bool {
	var size *httpbound.SizeError
	var moved *httpbound.RedirectError
	return errors.Is(err, errRefused) || errors.As(err, &size) || errors.As(err, &moved)
}

// passing reports whether an error may pass by itself.
func passing(err error) bool {
	var certificate *trust.CertificateError
	if refused(err) || errors.As(err, &certificate) {
		return false
	}
	if apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsInternalError(err) {
		return true
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code == 502
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded)
}

// misconfigured reports whether a call failed for a reason that is in the kubeconfig or the target file, as long as none has
// succeeded. Later it may pass: a name server or a login program fails for a moment too.
func misconfigured(err error) bool {
	var pinned *trust.CertificateError
	var refused *tls.CertificateVerificationError
	var name *net.DNSError
	return errors.As(err, &pinned) || errors.As(err, &refused) || errors.As(err, &name) && name.IsNotFound ||
		strings.Contains(err.Error(), execMark)
}

// Get reads one object into a value of its type.
func Get[T any](ctx context.Context, c *Client, r Resource, name string) (*T, error) {
	var found T
	err := c.call(ctx, "read "+r.Kind+" "+name, func(ctx context.Context) error {
		o, err := c.of(r).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return decode(o, &found)
	})
	if err != nil {
		return nil, err
	}
	return &found, nil
}

// List reads all objects that a selector of labels selects, in pages.
func List[T any](ctx context.Context, c *Client, r Resource, o metav1.ListOptions) ([]T, error) {
	list, _, err := list(ctx, c, r, o)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(list))
	for i := range list {
		if err := decode(&list[i], &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func list(ctx context.Context, c *Client, r Resource, o metav1.ListOptions) (all []unstructured.Unstructured, version string, err error) {
	o.Limit = pageItems
	ctx = httpbound.Budget(ctx, listMax)
	for range pagesMax {
		var page *unstructured.UnstructuredList
		err := c.call(ctx, "list "+r.Resource, func(ctx context.Context) (err error) {
			page, err = c.of(r).List(ctx, o)
			return err
		})
		if err != nil {
			return nil, "", err
		}
		all = append(all, page.Items...)
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return all, page.GetResourceVersion(), nil
		}
	}
	return nil, "", c.explain("list "+r.Resource, fmt.Errorf("%w: more than %d pages", errRefused, pagesMax))
}

// Create makes an object, which names itself, and returns it as the server has it. made recognizes an object that an earlier
// attempt of the same call made and whose answer was lost; it may be nil.
func Create[T any](ctx context.Context, c *Client, r Resource, object any, made func(*T) bool) (*T, error) {
	o, err := encode(r, object)
	if err != nil {
		return nil, err
	}
	var created metav1.CreateOptions
	if r.Strict {
		created.FieldValidation = metav1.FieldValidationStrict
	}
	var result T
	err = c.call(ctx, "create "+r.Kind+" "+o.GetName(), func(ctx context.Context) error {
		given, err := c.of(r).Create(ctx, o, created)
		if err == nil {
			return decode(given, &result)
		}
		if !apierrors.IsAlreadyExists(err) || made == nil {
			return err
		}
		existing, readErr := c.of(r).Get(ctx, o.GetName(), metav1.GetOptions{})
		if readErr != nil {
			return readErr
		}
		if readErr := decode(existing, &result); readErr != nil || !made(&result) {
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &result, nil
}

// Update replaces an object; its resource version makes the server refuse a change of one that has changed since it was read.
func Update[T any](ctx context.Context, c *Client, r Resource, object any) (*T, error) {
	o, err := encode(r, object)
	if err != nil {
		return nil, err
	}
	var result T
	err = c.call(ctx, "change "+r.Kind+" "+o.GetName(), func(ctx context.Context) error {
		given, err := c.of(r).Update(ctx, o, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		return decode(given, &result)
	})
	if err != nil {
		return nil, err
	}
	return &result, nil
}

// Delete removes the object with that identity; another of the same name stays. It succeeds where the object is gone. graceSeconds below
// zero is the object's own.
func (c *Client) Delete(ctx context.Context, r Resource, name string, uid types.UID, graceSeconds int64) error {
	o := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if graceSeconds >= 0 {
		o.GracePeriodSeconds = &graceSeconds
	}
	background := metav1.DeletePropagationBackground
	o.PropagationPolicy = &background
	return c.call(ctx, "delete "+r.Kind+" "+name, func(ctx context.Context) error {
		err := c.of(r).Delete(ctx, name, o)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // the name belongs to another object by now
			return nil
		}
		return err
	})
}

func encode(r Resource, object any) (*unstructured.Unstructured, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion(r.APIVersion())
	o.SetKind(r.Kind)
	return o, nil
}

func decode(o *unstructured.Unstructured, into any) error {
	if u, ok := into.(*unstructured.Unstructured); ok {
		*u = *o
		return nil
	}
	// By way of JSON: the library's converter refuses values that a newer server writes in another type.
	text, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Version is that of the API server: "v1.34.0".
func (c *Client) Version(ctx context.Context) (string, error) {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	text, err := c.Raw(ctx, http.MethodGet, "/version", nil)
	if err == nil {
		err = json.Unmarshal(text, &version)
	}
	return Words(version.GitVersion), err
}

// base is the URL of the API. Its path begins with a slash, without which a joined one would have none either.
func (c *Client) base() (*url.URL, error) {
	base, _, err := rest.DefaultServerUrlFor(c.config)
	if err == nil && base.Path == "" {
		base.Path = "/"
	}
	return base, err
}

// Raw makes a call at a path of the API, such as a subresource, with a JSON body, and returns the body of the answer.
func (c *Client) Raw(ctx context.Context, method, path string, body []byte) (answer []byte, err error) {
	err = c.call(ctx, method+" "+path, func(ctx context.Context) (err error) {
		answer, err = c.raw(ctx, method, path, body)
		return err
	})
	return answer, err
}

// Once reads a path of the API in one attempt, for what is soon read again anyway.
func (c *Client) Once(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	answer, err := c.raw(ctx, http.MethodGet, path, nil)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, c.ended(ctx)
	}
	return nil, c.explain("GET "+path, err)
}

func (c *Client) raw(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	base, err := c.base()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	given, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer given.Body.Close()
	answer, err := io.ReadAll(given.Body)
	if err != nil || given.StatusCode < http.StatusBadRequest {
		return answer, err
	}
	var status metav1.Status
	if json.Unmarshal(answer, &status) == nil && status.Kind == "Status" {
		return nil, apierrors.FromObject(&status)
	}
	return nil, apierrors.NewGenericServerResponse(given.StatusCode, method, schema.GroupResource{Resource: path}, "", string(answer), 0, true)
}

// Everywhere lists the objects of a resource in all namespaces.
func Everywhere[T any](ctx context.Context, c *Client, r Resource, o metav1.ListOptions) ([]T, error) {
	r.Cluster = true
	return List[T](ctx, c, r, o)
}
