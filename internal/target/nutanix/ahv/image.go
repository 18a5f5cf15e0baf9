package ahv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// Subnet is a network of VMs.
type Subnet struct {
	ExtID   string `json:"extId"`
	Name    string `json:"name"`
	Cluster string `json:"clusterReference"`
}

// Subnet finds a subnet by name or id; "": the only one.
func (c *Cluster) Subnet(ctx context.Context, name string) (Subnet, error) {
	all, err := prism.List[Subnet](ctx, c.Prism, "networking", "config/subnets", nil)
	if err != nil {
		return Subnet{}, err
	}
	var ours []Subnet
	for _, s := range all {
		if s.Cluster == "" || s.Cluster == c.ID {
			ours = append(ours, s)
		}
	}
	return pick(ours, choice[Subnet]{
		kind: "subnet", name: name, id: func(s Subnet) string { return s.ExtID }, called: func(s Subnet) string { return s.Name },
		hint: "write it as \"network\" into the target file",
	})
}

// Image is an image of a disk.
type Image struct {
	ExtID string `json:"extId"`
	Name  string `json:"name"`
	Bytes int64  `json:"sizeBytes"`
	Type  string `json:"type"`

	Description string    `json:"description"`
	Created     time.Time `json:"createTime"`
}

// Images are those of a Prism Central.
type Images struct{ Prism *prism.Client }

// Find finds an image by name or id.
func (c Images) Find(ctx context.Context, name string) (Image, error) {
	all, err := c.List(ctx)
	if err != nil {
		return Image{}, err
	}
	return PickImage(all, name)
}

// PickImage finds an image by name or id.
func PickImage(all []Image, name string) (Image, error) {
	return pick(all, choice[Image]{
		kind: "image", name: name, id: func(i Image) string { return i.ExtID }, called: func(i Image) string { return i.Name },
		hint: "upload it in Prism Central, or write the path of a file, with a slash in it, into \"templates\"",
	})
}

// List lists all images.
func (c Images) List(ctx context.Context) ([]Image, error) {
	return prism.List[Image](ctx, c.Prism, "vmm", "content/images", nil)
}

// unfinishedMax is how long an upload may take: an image that has no content after that is that of a program that died.
const unfinishedMax = 24 * time.Hour

// emptyMax bounds the time for an image without content.
const emptyMax = 5 * time.Minute

// Upload makes an image of a file on this machine. v4 takes images from URLs alone, so v3 does it. An image without content is
// removed again, also one that an earlier upload of that name left a day ago.
func (c Images) Upload(ctx context.Context, name, description, path string) (id string, err error) {
	mark := uuid.NewString() // v3 makes another image where the first answer was lost
	description += " Upload " + mark
	id, err = c.upload(ctx, name, description, path)
	clean := context.WithoutCancel(ctx)
	all, listed := c.List(clean)
	if listed != nil {
		return id, errors.Join(err, listed)
	}
	for _, one := range all {
		mine := strings.HasSuffix(one.Description, mark) && one.ExtID != id
		old := one.Bytes == 0 && c.Prism.Now().Sub(one.Created) > unfinishedMax && !one.Created.IsZero()
		if one.Name == name && (mine || old) {
			err = errors.Join(err, c.remove(clean, one.ExtID))
		}
	}
	return id, err
}

// upload does not clean up after itself.
func (c Images) upload(ctx context.Context, name, description, path string) (id string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	// An image that is not there yet cannot be removed: a cancelled upload waits for it.
	settled, stop := context.WithTimeout(context.WithoutCancel(ctx), emptyMax)
	id, err = c.empty(settled, name, description, path)
	if stop(); err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", err
	}
	a, err := c.Prism.Do(ctx, prism.Request{Method: http.MethodPut, Raw: placeV3(id) + "/file", Upload: prism.Upload{
		Open: func() (io.ReadCloser, error) { return os.Open(path) }, Bytes: info.Size(),
	}})
	if err == nil {
		var said struct {
			Task string `json:"task_uuid"`
		}
		_ = json.Unmarshal(a.Body, &said) // some versions answer without a task: the content is there then
		err = c.Prism.AwaitV3(ctx, said.Task, "the content of the image")
	}
	if err != nil {
		return "", fmt.Errorf("upload %q: %w", path, err)
	}
	return id, nil
}

// intent is the answer of v3 to a change.
type intent struct {
	Metadata struct {
		UUID string `json:"uuid"`
	} `json:"metadata"`
	Status struct {
		Context struct {
			Task string `json:"task_uuid"`
		} `json:"execution_context"`
	} `json:"status"`
}

func placeV3(image string) string { return "/api/nutanix/v3/images/" + url.PathEscape(image) }

// empty makes an image without content.
func (c Images) empty(ctx context.Context, name, description, path string) (id string, err error) {
	body := map[string]any{
		"spec":     map[string]any{"name": name, "description": description, "resources": map[string]any{"image_type": "DISK_IMAGE"}},
		"metadata": map[string]any{"kind": "image"}, "api_version": "3.1.0",
	}
	a, err := c.Prism.Do(ctx, prism.Request{Method: http.MethodPost, Raw: "/api/nutanix/v3/images", Body: body, ID: uuid.New()})
	if prism.IsGone(err) {
		return "", &diag.Error{
			Code: "nutanix-upload", Exit: diag.ExitUnavailable, Message: fmt.Sprintf("upload %q: this Prism Central has no API v3, which takes files", path), Err: err,
			Hint: "upload the image in Prism Central, and write its name into \"templates\" of the target file",
		}
	}
	if err != nil {
		return "", err
	}
	var made intent
	if err := json.Unmarshal(a.Body, &made); err != nil || made.Metadata.UUID == "" {
		return "", errors.Join(errors.New("make an image: prism gives no id"), err)
	}
	return made.Metadata.UUID, c.Prism.AwaitV3(ctx, made.Status.Context.Task, "the new image")
}

// remove removes an image. One that does not exist is not an error.
func (c Images) remove(ctx context.Context, id string) error {
	a, err := c.Prism.Do(ctx, prism.Request{Method: http.MethodDelete, Raw: placeV3(id)})
	if prism.IsGone(err) {
		return nil
	}
	var said intent
	if err == nil {
		_ = json.Unmarshal(a.Body, &said)
		err = c.Prism.AwaitV3(ctx, said.Status.Context.Task, "the removal of an image")
	}
	if err != nil {
		return fmt.Errorf("remove an image without content: %w", err)
	}
	return nil
}
