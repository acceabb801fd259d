package registry

import "context"

// Ping asks whether a registry answers at all, without credentials. One that wants some
// answers too.
func (c *Client) Ping(ctx context.Context, name string) error {
	what := "ping of " + name
	h, err := c.host(name)
	if err != nil {
		return &Error{Kind: Unreachable, What: what, Answer: "cannot be asked", Cause: err}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.meet(ctx, h, what)
}
