// Package nutanix reads statistics of Nutanix clusters: of Prism Central by API v4, and of Prism Element by v2 and v1, where v4 does not exist.
//
//	detect ──▶ v4.go │ element.go (v2, v1)
//	clusters, storage containers, hosts, VMs and their disks ──metrics.go──▶ samples
//
// Prism samples every 30 seconds and shows a sample up to about 20 seconds later. Samples of v4 have times, the begins of their
// intervals; here they have the ends, like those of other sources. Samples of Prism Element have none.
package nutanix

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/collect"
	"github.com/braggdev/bragg/internal/target"
	"github.com/braggdev/bragg/internal/wait"
)

// Kind returns the kind of this package.
func Kind() collect.Kind {
	return collect.Kind{Name: target.SourceNutanix, Summary: "Nutanix Prism Central (v4) or Prism Element (v2, v1)", Interval: sampling, Open: Open}
}

const (
	sampling    = 30 * time.Second
	pageMax     = 100 // entities of one page, the most that Prism gives
	pagesMax    = 100
	entitiesMax = 500 // of one kind; each is a request
	disksMax    = 100 // of all VMs
	triesMax    = 3   // of a request that Prism refuses because it is busy
	busyPause   = time.Second
)

// Open detects what answers. The user needs the role Prism Viewer; a credential without a user is an API key.
func Open(ctx context.Context, o collect.Options) (collect.Collector, error) {
	client, err := collect.NewClient(o, "Prism", "X-ntnx-api-key")
	if err != nil {
		return nil, err
	}
	p := &prism{client: client, o: o}
	versions := map[string]string{}
	for _, namespace := range []string{"clustermgmt", "vmm"} {
		version, err := p.version(ctx, namespace)
		if err != nil {
			client.Close()
			return nil, err
		}
		versions[namespace] = version
	}
	if versions["clustermgmt"] == "" || versions["vmm"] == "" {
		return &element{p}, nil
	}
	return &central{prism: p, versions: versions}, nil
}

// prism sends requests to one Prism.
type prism struct {
	client *collect.Client
	o      collect.Options
}

var versionText = regexp.MustCompile(`^v4\.[0-9]{1,3}(\.[a-z][0-9]{1,3})?$`)

// version is the newest version of a namespace of API v4; "" if there is none.
func (p *prism) version(ctx context.Context, namespace string) (string, error) {
	answer, err := p.do(ctx, collect.Call{Method: http.MethodOptions, Path: "/api/" + namespace + "/unversioned/info"})
	var refused *collect.StatusError
	if errors.As(err, &refused) && refused.Status != http.StatusUnauthorized && refused.Status != http.StatusForbidden {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var info struct{ Data string }
	if answer.JSON(&info) != nil || !versionText.MatchString(info.Data) {
		return "", nil
	}
	return info.Data, nil
}

// do sends one request, and again if Prism is busy.
func (p *prism) do(ctx context.Context, call collect.Call) (collect.Answer, error) {
	call.Header = map[string]string{"NTNX-Request-Id": uuid.NewString(), "Accept": "application/json"}
	for try := 1; ; try++ {
		answer, err := p.client.Do(ctx, call)
		var refused *collect.StatusError
		if try == triesMax || !errors.As(err, &refused) || !busy(refused.Status) {
			return answer, err
		}
		if wait.For(ctx, time.Duration(try)*busyPause) != nil {
			return answer, err
		}
	}
}

func busy(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// get sends one request and reads its JSON. It returns the clock of Prism.
func (p *prism) get(ctx context.Context, call collect.Call, to any) (time.Time, error) {
	answer, err := p.do(ctx, call)
	if err != nil {
		return time.Time{}, err
	}
	if err := answer.JSON(to); err != nil {
		return time.Time{}, fmt.Errorf("source %q: %s: the answer is not that of Prism", p.o.Source.Name, call.Path)
	}
	return answer.Clock, nil
}

// Close implements collect.Collector.
func (p *prism) Close() error {
	p.client.Close()
	return nil
}

// entity is a cluster, container, host, VM or disk of a VM.
type entity struct {
	kind    string // "cluster", "container", "host", "vm", "disk"
	name    string // of a disk "scsi.1", as AHV writes it
	vm      string // name of the VM, of itself and its disks
	node    string // name of the host of a VM
	path    string // of its statistics
	cluster string
}

func (e entity) labels() map[string]string {
	labels := map[string]string{collect.LabelObject: e.kind, collect.LabelName: e.name, "cluster": e.cluster, collect.LabelNode: e.node}
	switch e.kind {
	case "host":
		labels[collect.LabelNode] = e.name
	case "vm", "disk":
		labels[collect.LabelVM] = e.vm
	}
	return labels
}

// records reports whether the statistics are one record for each time.
func (e entity) records() bool { return e.vm != "" }
