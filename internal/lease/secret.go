package lease

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// On a machine with libvirt the lease is a secret of libvirt without a value: libvirt allows one secret per usage ID,
// regardless of its definer, and each has a UUID that is needed to change or remove it. Its description names the lease
// holder. Other objects with unique names would do, but secrets start nothing, appear in no list of VMs, and exist in user
// sessions too. A controller that reaches the machine in another way, and can use its libvirt, takes this lease beside its
// own, so that a machine has one lease for all providers.
const (
	secretUse     = "bragg-lease"
	secretPart    = "bragg-part-" // and the id of the holder: what shares the machine and cannot cut its power
	secretType    = "tls"
	secretXMLMax  = 8 << 10
	secretWords   = "lease of a Bragg controller: "
	secretsPerUse = 100
)

// Secrets is access to the libvirt of a machine by virsh. Both functions make one call and return its output; errors
// contain virsh's message. Change is for calls that change state.
type Secrets struct {
	Query  func(ctx context.Context, args ...string) ([]byte, error)
	Change func(ctx context.Context, stdin []byte, args ...string) ([]byte, error)
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

func secretText(use string, h Holder) ([]byte, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	s := secret{Ephemeral: "no", Private: "no", UUID: h.ID, Description: secretWords + string(text)}
	s.Usage.Type, s.Usage.Name = secretType, use
	return xml.Marshal(s)
}

var secretID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// parseSecret reads a secret that holds a lease. What the description does not say stays empty: the secret is there all the same.
func parseSecret(text []byte) (Holder, error) {
	var s secret
	if len(text) > secretXMLMax {
		return Holder{}, fmt.Errorf("read the lease: the secret has more than %d bytes", secretXMLMax)
	}
	if err := xml.Unmarshal(text, &s); err != nil {
		return Holder{}, fmt.Errorf("read the lease: %w", err)
	}
	var h Holder
	if words, ok := strings.CutPrefix(s.Description, secretWords); !ok || json.Unmarshal([]byte(words), &h) != nil {
		h = Holder{Run: "unknown", User: "unknown"}
	}
	h.ID = strings.TrimSpace(s.UUID)
	if !secretID.MatchString(h.ID) {
		return Holder{}, errors.New("read the lease: the secret has no UUID")
	}
	return h.Printable(), nil
}

// takesMax bounds how often a lease is tried for that is free one moment and taken the next.
const takesMax = 5

// Take takes the lease or renews it, as a Place does.
func (s Secrets) Take(ctx context.Context, o Order) (Answer, error) {
	h, over := o.Holder, o.Over
	for range takesMax {
		h.Renewed = time.Now().UTC().Truncate(time.Second)
		err := s.define(ctx, secretUse, h)
		if err == nil {
			return Answer{Fence: h.Fence}, nil
		}
		if !strings.Contains(err.Error(), "already defined for use") {
			return Answer{}, err
		}
		others, err := s.holders(ctx, secretUse)
		switch {
		case err != nil:
			return Answer{}, err
		case len(others) == 0: // it was given back meanwhile
		case over != "" && others[0].ID == over:
			h.Fence, over = max(h.Fence, others[0].Fence+1), ""
			if err := s.Drop(ctx, others[0].ID); err != nil {
				return Answer{}, err
			}
		default:
			return Answer{Other: &others[0]}, nil
		}
	}
	return Answer{}, errors.New("the lease comes and goes")
}

// define makes a secret. To define it once more changes nothing but its description.
func (s Secrets) define(ctx context.Context, use string, h Holder) error {
	text, err := secretText(use, h)
	if err == nil {
		_, err = s.Change(ctx, text, "secret-define", "--file=/dev/stdin")
	}
	return err
}

// Drop releases the lease. If that id no longer holds it, Drop has no effect.
func (s Secrets) Drop(ctx context.Context, id string) error {
	_, err := s.Change(ctx, nil, "secret-undefine", "--secret="+id)
	if noSecret(err) {
		return nil
	}
	return err
}

// Parts returns the holders that share the machine, according to its libvirt, except those known to have ended. Holders
// with an old renewal are included: its time is from another machine's clock, and that machine removes dead holders
// (see Mark).
func (s Secrets) Parts(ctx context.Context) ([]Holder, error) {
	all, err := s.holders(ctx, secretPart)
	var alive []Holder
	for _, h := range all {
		if !h.gone() {
			alive = append(alive, h)
		}
	}
	return alive, err
}

// sweep removes the parts of those who ended without giving them back. It is for the machine itself, by whose clock they renewed them.
func (s Secrets) sweep(ctx context.Context) {
	ids, err := s.uses(ctx, secretPart)
	if err != nil {
		return // those that come to cut its power see too many, rather than too few
	}
	for _, id := range ids {
		h, err := s.holder(ctx, id)
		if err != nil || h.Renewed.IsZero() {
			continue // its owner is unknown
		}
		if h.gone() || time.Since(h.Renewed) > Life+skewMax {
			_ = s.Drop(ctx, id)
		}
	}
}

// holders reads the secrets whose use begins so. More than secretsPerUse are an error: one that was left out might be alive.
func (s Secrets) holders(ctx context.Context, use string) ([]Holder, error) {
	ids, err := s.uses(ctx, use)
	if err != nil {
		return nil, err
	}
	if len(ids) > secretsPerUse {
		return nil, fmt.Errorf("read the leases: libvirt has %d secrets %q*, more than %d; the next local run on that host removes those of dead runs",
			len(ids), use, secretsPerUse)
	}
	var all []Holder
	for _, id := range ids {
		h, err := s.holder(ctx, id)
		if noSecret(err) {
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, h)
	}
	return all, nil
}

func (s Secrets) holder(ctx context.Context, id string) (Holder, error) {
	text, err := s.Query(ctx, "secret-dumpxml", "--secret="+id)
	if err != nil {
		return Holder{}, err
	}
	return parseSecret(text)
}

// uses lists the ids of the secrets whose use begins so.
func (s Secrets) uses(ctx context.Context, use string) (ids []string, err error) {
	list, err := s.Query(ctx, "secret-list")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && secretID.MatchString(fields[0]) && fields[1] == secretType && strings.HasPrefix(fields[2], use) {
			ids = append(ids, fields[0])
		}
	}
	return ids, nil
}

func noSecret(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "Secret not found") || strings.Contains(err.Error(), "no secret with matching uuid"))
}
