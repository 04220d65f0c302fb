-- Inside of a headless Neovim: opens files, and writes what the language server did to the file that WEIR_LSP_TOLD names.
-- The argument list has the files; weir.lua was read before.

local told = { files = {} }

local function write()
  local file = assert(io.open(vim.env.WEIR_LSP_TOLD, 'w'))
  file:write(vim.json and vim.json.encode(told) or vim.fn.json_encode(told))
  file:close()
  vim.cmd('qall!')
end

local function request(buffer, method, params)
  local answers = vim.lsp.buf_request_sync(buffer, method, params, 20000) or {}
  for _, answer in pairs(answers) do
    return answer.result
  end
end

local ok, why = pcall(function()
  for _, name in ipairs(vim.fn.argv()) do
    vim.cmd('edit ' .. vim.fn.fnameescape(name))
    local buffer = vim.api.nvim_get_current_buf()
    vim.bo[buffer].filetype = 'nginx'
    local published = false
    local one = { name = name, diagnostics = {} }
    vim.api.nvim_create_autocmd('DiagnosticChanged', { callback = function() published = true end })
    assert(vim.wait(20000, function() return #vim.lsp.buf_get_clients(buffer) > 0 or next(vim.lsp.buf_get_clients(buffer)) ~= nil end), 'no client')
    vim.wait(20000, function() return published end)
    for _, diagnostic in ipairs(vim.diagnostic.get(buffer)) do
      table.insert(one.diagnostics, {
        line = diagnostic.lnum + 1, code = diagnostic.code, message = diagnostic.message, source = diagnostic.source,
      })
    end
    local document = { uri = vim.uri_from_bufnr(buffer) }
    one.symbols = #(request(buffer, 'textDocument/documentSymbol', { textDocument = document }) or {})
    one.folds = #(request(buffer, 'textDocument/foldingRange', { textDocument = document }) or {})
    local last = vim.api.nvim_buf_line_count(buffer)
    local actions = request(buffer, 'textDocument/codeAction', {
      textDocument = document,
      range = { start = { line = 0, character = 0 }, ['end'] = { line = last, character = 0 } },
      context = { diagnostics = {} },
    }) or {}
    one.actions = #actions
    -- The first whole action is made by Neovim's own code.
    for _, action in ipairs(actions) do
      if action.edit then
        local clients = vim.lsp.buf_get_clients(buffer)
        local _, client = next(clients)
        vim.lsp.util.apply_workspace_edit(action.edit, client.offset_encoding)
        one.applied = action.title
        one.text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
        break
      end
    end
    table.insert(told.files, one)
  end
end)
if not ok then
  told.error = tostring(why)
end
write()
