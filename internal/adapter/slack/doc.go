// Package slack knows how to notify users through a Slack incoming webhook, or a compatible one.
package slack
