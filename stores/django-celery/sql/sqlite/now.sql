-- As Django's Now() writes it.
SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')
