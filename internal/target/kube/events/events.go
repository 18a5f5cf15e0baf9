// Package events reads what a cluster says of its objects, for messages.
package events

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/braggdev/bragg/internal/target/kube/api"
)

// Said is what the cluster says of one object, the latest first.
type Said []corev1.Event

// saidMax bounds how many events a message repeats.
const saidMax = 3

// Of reads the events of an object. Without the right to read them there are none.
func Of(ctx context.Context, c *api.Client, uid string) Said {
	if uid == "" {
		return nil
	}
	list, err := api.List[corev1.Event](ctx, c, api.Events, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + uid})
	if err != nil {
		return nil
	}
	list = slices.DeleteFunc(list, func(e corev1.Event) bool { return string(e.InvolvedObject.UID) != uid })
	slices.SortStableFunc(list, func(a, b corev1.Event) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), eventTime(b).Compare(eventTime(a)))
	})
	return list
}

// weight puts warnings first.
func weight(e corev1.Event) int {
	if e.Type == corev1.EventTypeWarning {
		return 1
	}
	return 0
}

func eventTime(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// Text returns the text of the latest event with one of these reasons; "": none.
func (s Said) Text(reasons ...string) string {
	for _, e := range s {
		if slices.Contains(reasons, e.Reason) {
			return e.Message
		}
	}
	return ""
}

func (s Said) String() string {
	if text := s.Beyond(""); text != "" {
		return text
	}
	return "the cluster has no event about it"
}

// Beyond is what the events say that why does not; "": nothing. The state of a container and its events repeat each other.
func (s Said) Beyond(why string) string {
	var texts []string
	for _, e := range s {
		text := e.Reason + ": " + api.Words(e.Message)
		routine := why != "" && e.Type == corev1.EventTypeNormal // scheduled, pulling
		if !routine && !slices.Contains(texts, text) && !contains(why, e.Message) {
			texts = append(texts, text)
		}
		if len(texts) == saidMax {
			break
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "the cluster says: " + strings.Join(texts, "; ")
}

// causeRunes is how much of the end of a message is its cause: what is before it names the image once more.
const causeRunes = 60

var number = regexp.MustCompile(`[0-9]+`)

// contains reports whether a text has the cause that a message ends with. Numbers, such as ports, differ from one attempt to the next.
func contains(text, message string) bool {
	message = strings.TrimPrefix(strings.TrimSpace(message), "Error: ")
	if text == "" || message == "" {
		return false
	}
	end := []rune(number.ReplaceAllString(message, "#"))
	end = end[max(0, len(end)-causeRunes):]
	return strings.Contains(number.ReplaceAllString(text, "#"), string(end))
}
