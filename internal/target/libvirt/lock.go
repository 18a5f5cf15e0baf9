package libvirt

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/lease"
	"github.com/braggdev/bragg/internal/target"
)

// A host's lease is a secret of libvirt that holds none: of secrets with one use there is one, whoever defines them from
// wherever, and each has a UUID without which it is neither changed nor removed. Its description says who has the lease.
// Other objects that are unique by name would do, but secrets start nothing, show up in no list of VMs, and are part of
// sessions of users too.
const (
	leaseUse    = "bragg-lease"
	leaseType   = "tls"
	leaseXMLMax = 8 << 10
)

var _ target.Locker = (*Target)(nil)

// Lock takes all hosts.
func (t *Target) Lock(ctx context.Context, h lease.Holder) (target.Lock, error) {
	if err := t.usable(ctx); err != nil {
		return nil, err
	}
	places := make([]lease.Place, len(t.nodes))
	for i, n := range t.nodes {
		places[i] = leased{n}
	}
	group, err := lease.Together(ctx, h, places)
	if err != nil {
		return nil, err
	}
	return group, nil
}

// leased is the lease of a host.
type leased struct{ node *node }

func (p leased) Name() string {
	if p.node.config.Name != "" {
		return p.node.config.Name
	}
	return p.node.id
}

func (p leased) Identity(ctx context.Context) (string, error) {
	host, err := p.node.host(ctx)
	return host.uuid, err
}

// secret is the part of a secret that a lease has.
type secret struct {
	XMLName     xml.Name `xml:"secret"`
	Ephemeral   string   `xml:"ephemeral,attr"` // no: it outlives the daemon
	Private     string   `xml:"private,attr"`
	UUID        string   `xml:"uuid"`
	Description string   `xml:"description"`
	Usage       struct {
		Type string `xml:"type,attr"`
		Name string `xml:"name"`
	} `xml:"usage"`
}

const leaseWords = "lease of a Bragg controller: "

func leaseSecret(h lease.Holder) ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	s := secret{Ephemeral: "no", Private: "no", UUID: h.ID, Description: leaseWords + string(text)}
	s.Usage.Type, s.Usage.Name = leaseType, leaseUse
	return xml.Marshal(s)
}

// parseLease reads a secret that holds a lease. What the description does not say stays empty: the secret is there all the same.
func parseLease(text []byte) (lease.Holder, error) {
	var s secret
	if len(text) > leaseXMLMax {
		return lease.Holder{}, fmt.Errorf("read the lease: the secret has more than %d bytes", leaseXMLMax)
	}
	if err := xml.Unmarshal(text, &s); err != nil {
		return lease.Holder{}, fmt.Errorf("read the lease: %w", err)
	}
	var h lease.Holder
	if words, ok := strings.CutPrefix(s.Description, leaseWords); !ok || json.Unmarshal([]byte(words), &h) != nil {
		h = lease.Holder{Run: "unknown", User: "unknown"}
	}
	h.ID, h.Run, h.User = strings.TrimSpace(s.UUID), tidy(h.Run), tidy(h.User)
	if !idText.MatchString(h.ID) {
		return lease.Holder{}, errors.New("read the lease: the secret has no UUID")
	}
	return h, nil
}

// takesMax bounds how often a lease is tried for that is free one moment and taken the next.
const takesMax = 5

func (p leased) Take(ctx context.Context, o lease.Order) (lease.Answer, error) {
	h, over := o.Holder, o.Over
	for range takesMax {
		h.Renewed = time.Now().UTC().Truncate(time.Second)
		text, err := leaseSecret(h)
		if err != nil {
			return lease.Answer{}, err
		}
		// To define it once more changes nothing but the moment.
		err = patiently(ctx, func(ctx context.Context) error {
			_, err := p.node.change(ctx, text, "secret-define", "--file=/dev/stdin")
			return err
		}, nil)
		if err == nil {
			return lease.Answer{Fence: h.Fence}, nil
		}
		if !said(err, "already defined for use") {
			return lease.Answer{}, err
		}
		other, err := p.holder(ctx)
		switch {
		case err != nil:
			return lease.Answer{}, err
		case other == nil: // it was given back meanwhile
		case over != "" && other.ID == over:
			h.Fence, over = max(h.Fence, other.Fence+1), ""
			if err := p.Drop(ctx, other.ID); err != nil {
				return lease.Answer{}, err
			}
		default:
			return lease.Answer{Other: other}, nil
		}
	}
	return lease.Answer{}, fmt.Errorf("node %q: the lease comes and goes", p.node.id)
}

// holder returns who has the lease; nil is nobody.
func (p leased) holder(ctx context.Context) (*lease.Holder, error) {
	list, err := p.node.query(ctx, "secret-list")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || !idText.MatchString(fields[0]) || fields[1] != leaseType || fields[2] != leaseUse {
			continue
		}
		text, err := p.node.query(ctx, "secret-dumpxml", "--secret="+fields[0])
		if noSecret(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		h, err := parseLease(text)
		if err != nil {
			return nil, fmt.Errorf("node %q: %w", p.node.id, err)
		}
		return &h, nil
	}
	return nil, nil
}

func (p leased) Drop(ctx context.Context, id string) error {
	err := patiently(ctx, func(ctx context.Context) error {
		_, err := p.node.change(ctx, nil, "secret-undefine", "--secret="+id)
		return err
	}, nil)
	if noSecret(err) {
		return nil
	}
	return err
}

func noSecret(err error) bool { return said(err, "Secret not found", "no secret with matching uuid") }
