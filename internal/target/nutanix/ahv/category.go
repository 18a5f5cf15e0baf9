package ahv

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"github.com/braggdev/bragg/internal/target/nutanix/prism"
)

// Category is a value of a category. Prism has one of each key and value.
type Category struct {
	ExtID       string `json:"extId"`
	Key         string `json:"key"`
	Value       string `json:"value"`
	Description string `json:"description"`
}

// Categories are those of a Prism Central.
type Categories struct{ Prism *prism.Client }

// Find finds the category with this key and value; none or one.
func (c Categories) Find(ctx context.Context, key, value string) ([]Category, error) {
	return prism.List[Category](ctx, c.Prism, "prism", "config/categories", prism.Filter("key eq %s and value eq %s", key, value))
}

// Make makes a category. If it exists, the error has status 409.
func (c Categories) Make(ctx context.Context, one Category) error {
	body := map[string]any{"key": one.Key, "value": one.Value, "description": one.Description}
	_, err := c.Prism.Create(ctx, "prism", "config/categories", body, uuid.New())
	return err
}

// Edit changes the description of a category to what edit makes of it: "" deletes the category, and the same text leaves it
// as it is. Of two callers one comes first, and the other edits its result.
func (c Categories) Edit(ctx context.Context, id string, edit func(description string) string) error {
	_, err := c.Prism.Change(ctx, "prism", "config/categories/"+url.PathEscape(id), func(object json.RawMessage) (prism.Request, error) {
		var now Category
		if err := json.Unmarshal(object, &now); err != nil {
			return prism.Request{}, err
		}
		switch text := edit(now.Description); text {
		case now.Description:
			return prism.Request{}, nil
		case "":
			return prism.Request{Method: http.MethodDelete}, nil
		default:
			body, err := prism.Merge(object, map[string]any{"description": text})
			return prism.Request{Method: http.MethodPut, Body: body}, err
		}
	})
	return err
}
